package kafka

// RawRecord is what a payload is delivered as in the format Raw.
var RawRecord = raw
