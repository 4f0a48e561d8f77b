// Package loopback finds addresses for programs that tests start, and that have to be told
// where to listen before they can say where they do.
package loopback

import (
	"net"
	"testing"
)

// FreeAddress is an address of this machine, as host and port, that nobody listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
