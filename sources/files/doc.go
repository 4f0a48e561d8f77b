// Package files reads the export files of providers: JSON Lines, Stripe's itemized
// balance report and payments list, and any CSV whose columns the configuration names.
//
// A row has one of three outcomes. It is an effect, with the numbers that a person reads
// in it; or it is refused, alone, with its line and the reason; or it is legible and not
// ours, and set aside. Nothing is guessed for one row: how numbers, dates, separators
// and texts are written is declared for the whole file or proven by it. What makes the
// file itself doubtful (missing columns, another encoding, a quote that is never closed,
// a number with two readings, an end in the middle of a row) is a [Fault], and then
// nothing of the file counts.
//
// Only the columns that a format names are read. Names, addresses, card data and free
// text never leave this package.
//
// An imported file is a look-up of its own: [Source] says what its silence is worth.
package files
