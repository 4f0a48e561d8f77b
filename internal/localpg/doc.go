// Package localpg runs a PostgreSQL of our own on this machine, for the demo, for
// trials (local:DIR) and for tests, from the PostgreSQL programs that are already
// installed. It downloads nothing and it is not meant for production.
//
// What it promises:
//
//   - It listens on a Unix socket in a folder that only its user may enter, and on
//     no network address. Access is by that folder, so there is no password.
//   - It works as root: PostgreSQL refuses to run as root, so the programs are run
//     as another user (the owner of the data, else "postgres", else "nobody").
//   - A kept server ([Options.Throwaway] false) never turns fsync off: it may hold
//     somebody's ledger.
//   - It ends with the process that started it, also after kill -9 (Linux; elsewhere
//     the next start of the same folder ends it first).
//   - Two processes that start the same folder share one server: the first one holds
//     a lock and runs it, the second one connects to it.
//
// What it refuses: PostgreSQL older than [MinMajor], and the data of another major
// version than the programs it has. It never changes, upgrades or removes data that
// it finds.
//
// The layout of a folder:
//
//	DIR/lock            held (flock) by the process that runs the server
//	DIR/data            PostgreSQL's data folder
//	DIR/data.new        an initdb that has not finished
//	DIR/run             the socket's folder, when its path is short enough
//	DIR/socket          names the socket's folder while the server is ready
//	DIR/postgresql.log  what the server said
package localpg
