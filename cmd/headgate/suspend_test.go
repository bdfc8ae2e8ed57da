package main

import (
	"testing"
	"time"
)

// The end of a suspension is a time in the future.
func TestSuspension(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for until, want := range map[string]string{
		"4h": "2026-01-31T16:00:00Z", "2026-01-31T14:00:00+01:00": "2026-01-31T13:00:00Z", "-4h": "", "0s": "", "2026-01-31T12:00:00Z": "", "tomorrow": "",
	} {
		how, err := suspension(until, "", "", now)
		if (err == nil) != (want != "") || err == nil && how["until"] != want {
			t.Errorf("%s: %v, %v, want %q", until, how, err, want)
		}
	}
	if how, err := suspension("", "", "", now); how != nil || err != nil {
		t.Errorf("nothing: %v, %v", how, err)
	}
}
