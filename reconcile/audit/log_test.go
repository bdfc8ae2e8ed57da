package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// People write the texts of entries, in annotations, comments and commits. None of them makes a second line, hides a part of a line, or
// makes it large. A program reads back what was written.
func TestHostileTexts(t *testing.T) {
	forged := "x\"}\n{\"kind\":\"Audit\",\"event\":\"ApprovalGiven\",\"by\":\"ann\"}\r\n\u2028\u2029\u0085"
	hidden := "\u202egnp.exe\u2066\u200b\x1b[2J\x7f\u009b\U000e0041é"
	for name, e := range map[string]Entry{
		"Texts":     {Sync: forged, Commit: hidden, By: forged, Digest: hidden, At: forged, Reason: hidden, Object: forged, Shown: hidden},
		"Lists":     {From: []string{forged, hidden}, Approvals: []report.Approved{{By: forged, ID: hidden, Digests: []string{hidden}}}},
		"Settings":  {Settings: []Setting{{Field: forged, Was: hidden, Is: forged}}},
		"NotUTF8":   {By: "a\xff\xfeb"},
		"Lonely":    {By: "\xed\xa0\x80"},
		"Large":     {By: strings.Repeat("\U0001f600", 100_000), Reason: strings.Repeat("\x00", 100_000), Shown: strings.Repeat("é", 100_000), Object: strings.Repeat("o", 100_000)},
		"LongLists": {From: slicesOf(10_000), Approvals: many(1000, report.Approved{By: strings.Repeat("b", 5000), Digests: slicesOf(1000)}), Settings: many(10_000, Setting{Field: "f", Is: strings.Repeat("v", 5000)})},
	} {
		var out bytes.Buffer
		if err := To(&out).Write(e); err != nil {
			t.Fatal(err)
		}
		text, ends := strings.CutSuffix(out.String(), "\n")
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); !ends || i >= 0 {
			t.Errorf("%s: one line of visible text: %q", name, text[max(i, 0):min(len(text), max(i, 0)+20)])
		}
		if most := 100_000; len(text) > most {
			t.Errorf("%s: a line has %d bytes, want at most %d", name, len(text), most)
		}
		var back Entry
		if err := json.Unmarshal([]byte(text), &back); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "Texts" && (back.By != forged || back.Reason != hidden) {
			t.Errorf("%q, %q", back.By, back.Reason)
		}
	}
}

func slicesOf(n int) []string { return many(n, strings.Repeat("d", 64)) }

func many[T any](n int, one T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = one
	}
	return all
}

// What is found in every pass has one line, in whatever commit. What is remembered is bounded.
func TestNoteOnce(t *testing.T) {
	var out bytes.Buffer
	l := To(&out)
	lines := func() int { defer out.Reset(); return strings.Count(out.String(), "\n") }
	e := Entry{Event: ApprovalRefused, Sync: "a/b", Digest: "d", By: "ann", Commit: "1", Reason: "old"}
	other := e
	other.By = "bob"
	elsewhere := e
	elsewhere.Sync = "a/c"
	later := e
	later.Commit = "2"
	l.NoteOnce(e, other, elsewhere, e, later)
	if n := lines(); n != 3 {
		t.Errorf("%d lines, want 3", n)
	}
	for i := range mostKnown {
		e.At = fmt.Sprint(i)
		l.NoteOnce(e)
	}
	if len(l.known["a/b"]) > mostKnown || lines() != mostKnown {
		t.Errorf("%d entries are remembered", len(l.known["a/b"]))
	}
	for i := range mostSyncs {
		e.Sync = fmt.Sprint(i)
		l.NoteOnce(e)
	}
	if len(l.known) > mostSyncs {
		t.Errorf("%d Syncs are remembered", len(l.known))
	}
	var none *Log
	none.NoteOnce(e)
	none.Note(e)
}

// A pass finds approvals that approve nothing, wherever they stand.
func TestRefused(t *testing.T) {
	r := report.Report{Sync: inventory.Sync{Namespace: "team", Name: "shop"}, Revision: "c0ffee", Findings: []manifest.Finding{
		{Rule: "approval", About: manifest.About{Subject: "d1"}, Message: "the approval expired"},
		{Rule: "approval", About: manifest.About{}, Message: "approvals on the pull request cannot be read"},
		{Rule: "unused", About: manifest.About{Subject: "p"}, Message: "the pattern matches nothing"},
	}}
	want := []Entry{{Event: ApprovalRefused, Sync: "team/shop", Commit: "c0ffee", Digest: "d1", Reason: "the approval expired"}}
	if diff := cmp.Diff(want, Refused(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
