"use strict";
const vitLooks={build(){}};
