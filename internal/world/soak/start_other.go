//go:build !linux

package main

import "os/exec"

// startOn starts a program. Here it is the system that says on which processor.
func startOn(c *exec.Cmd, _ int) error { return c.Start() }
