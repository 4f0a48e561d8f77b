// Command duck reconciles two tables with DuckDB, in one statement: it reads both files, joins
// them and writes the discrepancies.
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "github.com/duckdb/duckdb-go/v2"
)

const statement = `
copy (
with o as (select * from read_csv('%s')),
e as (select *, row_number() over (partition by key order by created_at, id) rn from read_csv('%s')),
j as (select o.id op, e.id effect,
  case when e.id is null then 'missing' when o.id is null then 'orphan' when e.rn > 1 then 'duplicate'
       when o.amount <> e.amount or o.currency <> e.currency then 'mismatch' else 'matched' end kind
  from o full outer join e on o.key = e.key)
select kind, op, effect from j where kind <> 'matched') to '%s' (header)`

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: duck OPERATIONS EFFECTS OUT"))
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		fail(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprintf(statement, os.Args[1], os.Args[2], os.Args[3])); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "duck:", err)
	os.Exit(1)
}
