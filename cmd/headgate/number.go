package main

import (
	"errors"
	"strconv"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/spf13/cobra"
)

// A number is the value of a flag for a whole number within a range. TestEveryNumericFlagIsValidated refuses the types of pflag,
// which accept any number.
type number struct {
	to *int
	v1alpha1.Range
}

// addNumber registers a flag for a whole number. The default may be outside of the range.
func addNumber(cmd *cobra.Command, to *int, name string, otherwise int, of v1alpha1.Range, usage string) {
	*to = otherwise
	cmd.Flags().Var(number{to, of}, name, usage)
}

func (n number) String() string {
	if n.to == nil { // pflag compares with a zero value
		return "0"
	}
	return strconv.Itoa(*n.to)
}

func (n number) Type() string { return "int" }

// Set sets the number.
func (n number) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("use a whole number")
	}
	if err := n.Check(int64(v)); err != nil {
		return err
	}
	*n.to = v
	return nil
}

// ports are the values of a flag for a TCP port, which may be given several times.
type ports struct{ to *[]int64 }

func (n ports) String() string { return "" }

func (n ports) Type() string { return "int" }

// Set adds a port.
func (n ports) Set(text string) error {
	var v int
	if err := (number{&v, v1alpha1.Range{Least: 1, Most: 65535}}).Set(text); err != nil {
		return err
	}
	*n.to = append(*n.to, int64(v))
	return nil
}

// A level is the value of --verbose, which may be repeated: -vv.
type level struct{ number }

func (l level) Type() string { return "count" }

// Set sets the level, or raises it by one.
func (l level) Set(text string) error {
	if text == oneMore {
		text = strconv.Itoa(*l.to + 1)
	}
	return l.number.Set(text)
}

// oneMore is the value that pflag sets for each -v.
const oneMore = "+1"

// A lapse is the value of a flag for a duration. Unless orNone is set, it is longer than 0.
type lapse struct {
	*time.Duration

	orNone bool
}

// addLapse registers a flag for a positive duration.
func addLapse(cmd *cobra.Command, to *time.Duration, name string, otherwise time.Duration, usage string) {
	*to = otherwise
	cmd.Flags().Var(lapse{Duration: to}, name, usage)
}

// addWait registers a flag for a duration that may be 0.
func addWait(cmd *cobra.Command, to *time.Duration, name string, otherwise time.Duration, usage string) {
	*to = otherwise
	cmd.Flags().Var(lapse{to, true}, name, usage)
}

func (l lapse) String() string {
	if l.Duration == nil { // pflag compares with a zero value
		return ""
	}
	return l.Duration.String()
}

func (l lapse) Type() string { return "duration" }

// Set sets the duration.
func (l lapse) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch none := d == 0 && l.orNone; {
	case err != nil || d <= 0 && !none:
		return errors.New("use a duration longer than 0, such as 30s, 5m or 1h")
	case d > v1alpha1.MostDuration:
		return errors.New("use a duration of at most a year")
	}
	*l.Duration = d
	return nil
}
