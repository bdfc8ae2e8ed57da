package v1alpha1

import (
	"errors"
	"fmt"
	"time"
)

// A Range is what a number may be.
//
// +kubebuilder:object:generate=false
type Range struct{ Least, Most int64 }

// Check returns an error for a number outside of the range.
func (r Range) Check(n int64) error {
	switch {
	case n < r.Least:
		return fmt.Errorf("must be at least %d, not %d", r.Least, n)
	case n > r.Most:
		return fmt.Errorf("must be at most %d, not %d", r.Most, n)
	}
	return nil
}

// A Number is a field of a Spec that holds a whole number.
//
// +kubebuilder:object:generate=false
type Number struct {
	Field string // path of the field, such as "spec.maxPrunes"
	Range
	Value  int64 // 0 if the field is left out
	Set    bool
	Writes bool // the field only concerns writes, so it has no effect with PolicyObservable
}

// The ranges of numbers. A count that no repository and no cluster reaches is a mistake, and so is a duration of more than a year.
const (
	mostCounted = 1_000_000_000
	mostID      = 1 << 53 // JSON has no larger whole numbers
	mostPort    = 65535
	mostDepth   = 5000 // no YAML library fails at this depth

	// MostDuration is the maximum of every duration.
	MostDuration = 365 * 24 * time.Hour
)

// Numbers returns the whole numbers of a Spec. Validate checks their ranges, and so do the flags that set them.
func (s *Spec) Numbers() []Number {
	counted := Range{1, mostCounted}
	all := append(s.Limits.numbers("spec.limits."),
		optional("spec.maxPrunes", s.MaxPrunes, counted).ofWrites(),
		optional("spec.maxActivations", s.MaxActivations, counted).ofWrites())
	if of := s.Conversion.Service; of != nil {
		all = append(all, unlessZero("spec.conversion.service.port", of.Port, Range{1, mostPort}))
	}
	if s.Statuses != nil && s.Statuses.App != nil {
		app := s.Statuses.App
		all = append(all, unlessZero("spec.statuses.app.id", app.ID, Range{1, mostID}), unlessZero("spec.statuses.app.installation", app.Installation, Range{1, mostID}))
	}
	return all
}

// numbers returns the whole numbers of the limits, whose fields begin with a path.
func (l Limits) numbers(path string) []Number {
	counted := Range{1, mostCounted}
	return []Number{
		unlessZero(path+"documents", int64(l.Documents), counted),
		unlessZero(path+"nodes", int64(l.Nodes), counted),
		unlessZero(path+"totalNodes", int64(l.TotalNodes), counted),
		unlessZero(path+"depth", int64(l.Depth), Range{1, mostDepth}),
	}
}

func optional(field string, n *int, of Range) Number {
	if n == nil {
		return Number{Field: field, Range: of}
	}
	return Number{Field: field, Range: of, Value: int64(*n), Set: true}
}

// unlessZero returns a number that 0 leaves out. A file cannot contain that 0.
func unlessZero(field string, n int64, of Range) Number {
	return Number{Field: field, Range: of, Value: n, Set: n != 0}
}

func (n Number) ofWrites() Number {
	n.Writes = true
	return n
}

// numbers checks numbers that are set.
func (p *problems) numbers(all []Number) {
	for _, n := range all {
		if err := n.Check(n.Value); n.Set && err != nil {
			p.add(n.Field, "%w; leave it out for the default", err)
		}
	}
}

// durations checks every duration of a Spec whose defaults are filled in.
func (p *problems) durations(spec Spec) {
	for _, of := range []struct {
		field string
		value Duration
		least time.Duration
	}{
		{"spec.source.interval", spec.Source.Interval, time.Second},
		{"spec.source.fetchTimeout", spec.Source.FetchTimeout, time.Second},
		{"spec.interval", spec.Interval, time.Second},
		{"spec.timeout", spec.Timeout, time.Second},
		{"spec.fullCheckInterval", spec.FullCheckInterval, time.Minute},
	} {
		if of.value != "" {
			p.duration(of.field, of.value, of.least)
		}
	}
}

func (p *problems) duration(field string, d Duration, least time.Duration) {
	v, err := time.ParseDuration(string(d))
	switch {
	case err != nil:
		p.add(field, "must be a duration such as 30s, 5m or 1h, not %q", string(d))
	case v < least:
		p.add(field, "must be at least %s, not %s", least, d)
	case v > MostDuration:
		p.add(field, "must be at most a year (%s), not %s", MostDuration, d)
	}
}

// Validate returns every mistake in limits, each with the name of its field.
func (l Limits) Validate() error {
	var p problems
	p.sizes("", l)
	p.numbers(l.numbers(""))
	return errors.Join(p...)
}

// sizes checks that no limit exceeds the size of one object in a repository.
func (p *problems) sizes(path string, l Limits) {
	for _, s := range []struct {
		name string
		size Size
		most Size
	}{{"fileSize", l.FileSize, "256Mi"}, {"totalSize", l.TotalSize, "64Gi"}} {
		if s.size != "" && (s.size.Bytes() < 1 || s.size.Bytes() > s.most.Bytes()) {
			p.add(path+s.name, "must be a size such as 16Mi, at most %s, not %q", s.most, string(s.size))
		}
	}
}
