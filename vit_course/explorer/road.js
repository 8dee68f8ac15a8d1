"use strict";
const vitRoad={build(){}};
