"use strict";
const vitTour={build(){}};
