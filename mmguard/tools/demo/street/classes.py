"""The Cityscapes classes that the scenes hold, by train id."""

ROAD, SIDEWALK, BUILDING, POLE, LIGHT, SIGN, VEGETATION, TERRAIN, SKY = 0, 1, 2, 5, 6, 7, 8, 9, 10
PERSON, RIDER, CAR, BUS, BICYCLE = 11, 12, 13, 15, 18
IGNORED = 255
