// Package peers holds `reconciler compare` against other ways to reconcile the same two
// tables: DuckDB, a plain Python script, PostgreSQL. Each is a process (or a backend) of its
// own, so that each shows its own time and memory, and each must find the same discrepancies.
package peers
