package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/render/manifest"
)

// The subset of SARIF 2.1.0 that code scanning reads; see https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				Line int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// SARIF writes the annotations of a report as a SARIF log for code scanners and editors.
func SARIF(w io.Writer, r Report) error {
	levels := map[manifest.Severity]string{manifest.Error: "error", manifest.Warning: "warning", manifest.Note: "note"}
	run := sarifRun{Results: []sarifResult{}}
	rules := []sarifRule{}
	found := annotations(r)
	ids := fingerprints(found)
	for i, a := range found {
		result := sarifResult{
			RuleID: a.Rule, Level: levels[a.Severity], Message: sarifText{legible.Line(a.Message)},
			Fingerprints: map[string]string{"headgate/v2": ids[i]},
		}
		if a.Origin.Path != "" {
			var at sarifLocation
			at.Physical.Artifact.URI = escapedPath(a.Origin.Path)
			at.Physical.Region.Line = max(a.Origin.Line, 1)
			result.Locations = []sarifLocation{at}
		}
		run.Results = append(run.Results, result)
		if rule := (sarifRule{a.Rule}); !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	run.Tool.Driver = sarifDriver{Name: "Headgate", Rules: rules}
	return WriteJSON(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// escapedPath returns a path as a relative URI: https://www.rfc-editor.org/rfc/rfc3986#section-2.3.
func escapedPath(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
