"use strict";
const vitParts={buildSwitches(){},buildLens(){}};
