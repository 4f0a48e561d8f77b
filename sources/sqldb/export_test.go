package sqldb

// TooFarBehind is what a standby is held against.
var TooFarBehind = tooFarBehind
