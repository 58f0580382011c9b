//go:build !unix

package main

import (
	"errors"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// processorTime is known on Unix alone.
func processorTime() (measure.Answer, error) { return measure.Answer{}, errors.ErrUnsupported }
