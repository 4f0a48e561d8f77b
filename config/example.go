package config

import _ "embed"

// Example is an annotated file that holds every key with its default. It is the one
// manual of the configuration: `reconciler config example` prints it, and
// docs/config.md is made from it.
//
//go:embed example.yaml
var Example string
