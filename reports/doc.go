// Package reports turns what was recorded into pages for people and documents for
// programs: the story of one operation, lists of operations, and what a sweep or a
// comparison found.
//
// It is pure: it renders what it is given, asks nobody and reads no clock. Text is at
// most 100 columns wide and shows text from outside only as printable characters of
// one line, so that no id or reason can steer a terminal. Times carry their zone,
// amounts their currency.
package reports
