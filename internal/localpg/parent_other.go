//go:build unix && !linux

package localpg

import "syscall"

// setParentDeath does nothing here: only Linux tells a child that its parent died. A
// server that outlived a killed process is ended by the next [Start] of its folder.
func setParentDeath(*syscall.SysProcAttr, syscall.Signal) {}
