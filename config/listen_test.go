package config

import (
	"os"
	"strings"
	"testing"
)

func TestWhereTheDaemonMayListen(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		":8080": true, "127.0.0.1:9464": true, "[::1]:9464": true, "[fe80::1%eth0]:9464": true, "db-1.internal:9464": true, "localhost:0": true,
		"": false, "8080": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:http": false, "::1:9464": false, ":70000": false, ":-1": false,
		"http://localhost:9464": false, "a b:9464": false,
	} {
		if isAddress(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

func TestAConfigurationThatMayNotBeReadIsNotToBeWrittenAnew(t *testing.T) {
	t.Parallel()
	err := &MissingError{Path: "r.yaml", By: "--config", Err: &os.PathError{Op: "open", Path: "r.yaml", Err: os.ErrPermission}}
	if text := err.Error(); !strings.HasSuffix(text, "permission denied; let the user that runs this read it") {
		t.Error(text)
	}
}
