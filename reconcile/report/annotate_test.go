package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"
)

// An error in a commit is an annotation on its line, like a finding, because the author of the change reads the diff and not the
// log.
func TestErrorsHavePlaces(t *testing.T) {
	r := Failed(inventory.Sync{}, "", errors.New("policies/storage.yaml:4: is no YAML; quote it\nno place: 3\nthe registry did not answer"))
	var b bytes.Buffer
	if err := WorkflowCommands(&b, r); err != nil {
		t.Fatal(err)
	}
	want := "::error file=policies/storage.yaml,line=4,title=error::is no YAML; quote it\n::error title=error::no place: 3\n::error title=error::the registry did not answer\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// If a wildcard activates a thousand definitions, there must be one annotation, not a thousand.
func TestOpeningsAreGrouped(t *testing.T) {
	wide := activation.Activator{Cause: activation.Matched, Policy: "team", Pattern: "*", Origin: manifest.Origin{Path: "p.yaml", Line: 7}}
	full := activation.Activator{Cause: activation.Matched, Policy: "team", Pattern: "b.x", Origin: manifest.Origin{Path: "p.yaml", Line: 8}}
	r := Report{Preview: &Preview{}}
	for _, name := range []string{"a.x", "b.x", "c.x", "d.x", "e.x", "f.x", "g.x", "h.x", "i.x", "j.x"} {
		o := Opening{Definition: Definition{Name: name, Because: []activation.Activator{wide}}}
		if name == "b.x" {
			o.Because = append(o.Because, full)
		}
		r.Preview.Opens = append(r.Preview.Opens, o)
	}
	var got []string
	for _, a := range r.annotatedOpenings() {
		got = append(got, string(a.Severity)+" "+a.Origin.String()+" "+a.Message)
	}
	want := []string{
		`warning p.yaml:7 "*" of policy team activates 9 definitions, which cannot be undone: a.x, c.x, d.x, e.x, f.x, g.x, h.x, i.x, 1 more`,
		`note p.yaml:8 "b.x" of policy team activates 1 definition, which cannot be undone: b.x`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Code scanners reject a log whose results lack a rule or whose locations are not URIs.
func TestSARIF(t *testing.T) {
	r := Failed(inventory.Sync{}, "", errors.New("a%20:b/ü,x.yaml:4: no"))
	r.Error = strings.ReplaceAll(r.Error, "a%20:b", "a%20b")
	var b bytes.Buffer
	if err := SARIF(&b, r.On(nil)); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	known := map[string]bool{}
	for _, rule := range run.Tool.Driver.Rules {
		known[rule.ID] = true
	}
	placed := 0
	for _, result := range run.Results {
		if !known[result.RuleID] || result.Message.Text == "" || result.Fingerprints["headgate/v2"] == "" {
			t.Errorf("a result lacks its rule, its message or its fingerprint: %+v", result)
		}
		for _, at := range result.Locations {
			placed++
			if got := at.Physical.Artifact.URI; got != "a%2520b/%C3%BC%2Cx.yaml" || at.Physical.Region.Line != 4 {
				t.Errorf("the location is %s:%d", got, at.Physical.Region.Line)
			}
		}
	}
	if placed != 1 {
		t.Errorf("%d results have a place, want 1", placed)
	}
}
