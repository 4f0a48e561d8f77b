// Package packagetest holds what ships the program against what reads it: the container
// file is taken apart, built and run in an empty root; the compose file is held against the
// specification and against the files that it names; the units are judged by systemd.
package packagetest
