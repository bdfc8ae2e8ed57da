package v1alpha1

import (
	"slices"
	"strings"
	"testing"
)

// A target is the name of a branch.
func TestTargetsOfApprovals(t *testing.T) {
	for name, good := range map[string]bool{"main": true, "release/1.x": true, "": false, "refs/heads/main": false, "a b": false, "v*": false} {
		s := Sync{}
		s.Spec.Approvals.Targets = []string{name}
		if err := s.Validate(); err == nil || strings.Contains(err.Error(), "spec.approvals.targets") == good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An annotation holds one approval or several, with or without a user and a time.
func TestApprovals(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 32)
	for text, want := range map[string][]GivenApproval{
		"":                             nil,
		a:                              {{Digest: a}},
		a + "," + b:                    {{Digest: a}, {Digest: b}},
		a + "  " + b + "\n":            {{Digest: a}, {Digest: b}},
		a + " at 2026-01-31T12:00:00Z": {{Digest: a, At: "2026-01-31T12:00:00Z"}},
		a + " by alice at 2026-01-31T12:00:00Z, " + b:          {{Digest: a, By: "alice", At: "2026-01-31T12:00:00Z"}, {Digest: b}},
		a + " by Alice Example at 2026-01-31T12:00:00Z " + b:   {{Digest: a, By: "Alice Example", At: "2026-01-31T12:00:00Z"}, {Digest: b}},
		a + " at 2026-01-31T12:00:00Z at 2026-02-01T12:00:00Z": {{Digest: a, At: "2026-01-31T12:00:00Z at 2026-02-01T12:00:00Z"}},
		"by " + a: {{Digest: "by"}, {Digest: a}},
	} {
		s := Sync{}
		s.Annotations = map[string]string{ApproveAnnotation: text}
		if got := s.Approvals(); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		bad := slices.ContainsFunc(want, func(a GivenApproval) bool { return !IsDigest(a.Digest) || strings.Contains(a.At, " ") })
		err := s.Validate()
		if refused := err != nil && strings.Contains(err.Error(), "metadata.annotations["+ApproveAnnotation+"]"); refused != bad {
			t.Errorf("%q is refused: %t, want %t", text, refused, bad)
		}
	}
}

// A file with a malformed approval is a mistake of its author. An object goes on without it: who annotates it may not be who owns it.
func TestMalformedApprovalOfAnObject(t *testing.T) {
	s := Sync{}
	s.Name, s.Spec.Source.Repo = "a", "https://git.example.org/a/b"
	s.Annotations = map[string]string{ApproveAnnotation: "yes please"}
	s.Default()
	if err := s.Validate(); err == nil {
		t.Error("Validate accepts a malformed approval")
	}
	if err := s.ValidateObject(); err != nil {
		t.Errorf("ValidateObject: %v", err)
	}
}
