package localpg

import "syscall"

// setParentDeath asks the kernel to send the signal to the child when the thread that
// started it dies, which is why [Start] keeps a thread for the server's whole life.
func setParentDeath(attr *syscall.SysProcAttr, signal syscall.Signal) {
	attr.Pdeathsig = signal
}
