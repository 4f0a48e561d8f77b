// Package sqldb observes effects that stand in a PostgreSQL table of another system, and
// asks local business objects as witnesses: is the order marked refunded, and for how much?
//
// It only reads. Every request is one transaction that PostgreSQL itself holds to READ ONLY,
// with time-outs for connecting, for locks and for the statement, under a role of its own that
// needs SELECT on the named tables and nothing else.
//
// # Names and values
//
// No name of the configuration is ever part of a statement. A table's columns are looked up in
// the catalogue with the configured names as parameters, in the same transaction, and a
// statement is written with the names that the catalogue gave back, quoted. Every value is a
// parameter. Operators and types are those of pg_catalog, whatever the role's search_path.
//
// # How a batch is asked
//
// One request asks for many: all ids of a batch, then all references, keys and parents that
// are not answered yet, each by `= ANY`. A window is listed, page by page by the creation time
// and the id of the last row, only for questions that nothing else can answer.
//
// # What is never absent
//
// A table, view or column that is not there or has a type that cannot hold what is looked for;
// a row without id or creation time, or with a word that has no meaning; rows that row-level
// security would hide; a refused connection, permission or statement; a time-out; and a standby
// that has not replayed what the lag promises: all of these are blind.
package sqldb
