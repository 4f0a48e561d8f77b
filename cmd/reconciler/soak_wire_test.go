//go:build e2e

package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// wire is the network between everybody and one PostgreSQL.
type wire struct {
	listener net.Listener

	mu    sync.Mutex // guards what follows
	to    string     // the server's socket
	links map[*link]bool
}

// link is one connection on a wire.
type link struct {
	client, server net.Conn
	deaf           atomic.Bool // the next reply is lost, and the connection with it
}

func (l *link) close() {
	_ = l.client.Close() // both ends see what a broken network shows them
	_ = l.server.Close()
}

func newWire(t *testing.T) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, links: map[*link]bool{}}
	go w.serve()
	t.Cleanup(func() {
		_ = l.Close() // nobody listens after the test
		w.cut()
	})
	return w
}

// lead lets new connections go to the server of a socket.
func (w *wire) lead(socket string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = socket
}

func (w *wire) serve() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		to := w.to
		w.mu.Unlock()
		server, err := net.Dial("unix", to)
		if err != nil {
			_ = client.Close() // nobody is there
			continue
		}
		l := &link{client: client, server: server}
		w.mu.Lock()
		w.links[l] = true
		w.mu.Unlock()
		go w.carry(l)
	}
}

// carry moves bytes both ways until one side ends, or the reply is lost.
func (w *wire) carry(l *link) {
	go func() {
		_, _ = io.Copy(l.server, l.client) // its end is the end of the connection
		l.close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := l.server.Read(buffer)
		if err != nil || l.deaf.Load() {
			break
		}
		if _, err := l.client.Write(buffer[:n]); err != nil {
			break
		}
	}
	l.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.links, l)
}

// cut breaks all connections, in whatever phase their work is.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		l.close()
	}
}

// deafen loses the next reply of every connection: what was asked for is done, and who
// asked does not hear of it.
func (w *wire) deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		l.deaf.Store(true)
	}
}
