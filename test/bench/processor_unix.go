//go:build unix

package main

import (
	"syscall"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// processorTime is how much of the processor's time this process has had.
func processorTime() (measure.Answer, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return measure.Answer{}, err
	}
	return measure.Answer{Figures: []int64{u.Utime.Nano() + u.Stime.Nano()}}, nil
}
