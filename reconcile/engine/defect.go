package engine

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// A DefectError is the error of something that panicked. A process does the work of many syncs, and the others have nothing to do with it.
type DefectError struct {
	What  string // that panicked
	Value any
	Trace []byte
}

// Caught calls do, and returns a panic of it as a DefectError.
func Caught(what string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = DefectError{what, p, debug.Stack()}
		}
	}()
	return do()
}

// Stack returns the panic and its stack trace.
func (d DefectError) Stack() string { return fmt.Sprintf("%v\n%s", d.Value, d.Trace) }

// Error returns one line, because some panics contain a stack trace, which does not belong in comments.
func (d DefectError) Error() string {
	what, _, _ := strings.Cut(fmt.Sprint(d.Value), "\n")
	return "the " + d.What + " ended in a defect of Headgate: " + what
}
