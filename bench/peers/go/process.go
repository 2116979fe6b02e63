package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Binds the process to the last core that it may use, as the other clients are. Threads take what the thread has that
// starts them, and some have started already: so the program is begun anew.
func pin() error {
	const begun = "TORC_BENCH_PINNED"
	if os.Getenv(begun) != "" {
		return nil
	}
	runtime.LockOSThread()
	var cores, one [1024 / 64]uint64
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(cores),
		uintptr(unsafe.Pointer(&cores))); e != 0 {
		return e
	}
	for i := len(cores)*64 - 1; i >= 0; i-- {
		if cores[i/64]&(1<<(i%64)) != 0 {
			one[i/64] = 1 << (i % 64)
			break
		}
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(one),
		uintptr(unsafe.Pointer(&one))); e != 0 {
		return e
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), begun+"=1"))
}
