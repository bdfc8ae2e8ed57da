package render_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
)

// If a file of approvals could be misread, it would approve steps that nobody approved. So every mistake in it is an error with its
// line.
func TestApprovalsFile(t *testing.T) {
	const head = "apiVersion: headgate.dev/v1alpha1\nkind: Approvals\napprovals:\n"
	const digest = "3f786850e387550fdab836ed7e6dc881"
	const rest = "  by: alice\n  why: empty\n  expires: 2026-01-31T12:00:00Z\n"
	for name, tc := range map[string]struct {
		reason string
		file   string
		want   int
		err    string
	}{
		"None":       {reason: "A file without entries is valid.", file: head},
		"One":        {reason: "A file may have a single entry.", file: head + "- digests: [\"" + digest + "\"]\n" + rest, want: 1},
		"NoExpiry":   {"An approval must have an expiry.", head + "- digests: [" + digest + "]\n  by: alice\n  why: empty\n", 0, "approvals.yaml:4: approvals[0].expires must be a time such as"},
		"NoTime":     {"The expiry must be a time with a time zone.", head + "- digests: [" + digest + "]\n  by: a\n  why: b\n  expires: 2026-01-31\n", 0, "approvals.yaml:7: approvals[0].expires must be a time"},
		"NoOne":      {"An approval must name the approver.", head + "- digests: [" + digest + "]\n  why: b\n  expires: 2026-01-31T12:00:00Z\n", 0, "approvals[0].by must be a string that is not empty"},
		"Short":      {"A shortened digest could match another step, and an author could search for such a step.", head + "- digests: [3f786850e387]\n" + rest, 0, "approvals.yaml:4: approvals[0].digests[0] is not a digest of 32"},
		"NoDigest":   {"An entry without a digest must be an error.", head + "- digests: []\n" + rest, 0, "must be a list with at least one item"},
		"Unknown":    {"A misspelt field must be an error.", head + "- digests: [" + digest + "]\n  sync: prod\n" + rest, 0, "approvals[0].sync is not known"},
		"Mapping":    {"The approvals must be a list, not a mapping.", head + "  a: b\n", 0, "approvals must be a list"},
		"Other":      {"The file must be of kind Approvals.", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", 0, "approvals.yaml:1: is not of kind Approvals"},
		"NoManifest": {"The file must be an object, not a list.", "- digests: [" + digest + "]\n" + rest, 0, "is not of kind Approvals"},
		"Broken":     {"The file must be valid YAML.", head + "- {", 0, "approvals.yaml"},
		"TooMany":    {"The number of digests is limited, because clusters record the used ones.", head + "- digests:\n" + strings.Repeat("  - "+digest+"\n", render.MostApproved+1) + rest, 0, "more than 500 digests"},
		"TooLarge":   {"The size of the file is limited.", head + strings.Repeat("# a long comment\n", 10_000), 0, "approvals.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := render.ReadApprovals(tc.file)
			if tc.err == "" && (err != nil || len(all) != tc.want) {
				t.Errorf("%s\ngot %v, %v", tc.reason, all, err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.err, err)
			}
			if tc.err != "" {
				files := fstest.MapFS{render.ApprovalsFile: {Data: []byte(tc.file)}, "a.yaml": {}}
				if _, err := render.Render(render.Input{Files: files}, render.Options{}); err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("want a commit with this file refused with %q, got %v", tc.err, err)
				}
			}
		})
	}
}

// FuzzApprovals reads arbitrary approval files. An accepted file contains only complete digests, names who approves and why, and
// expires.
func FuzzApprovals(f *testing.F) {
	const digest = "3f786850e387550fdab836ed7e6dc881"
	valid := "apiVersion: headgate.dev/v1alpha1\nkind: Approvals\napprovals:\n- digests: [\"" + digest + "\"]\n  by: alice\n  why: empty\n  expires: 2026-01-31T12:00:00Z\n"
	for _, text := range []string{
		valid, valid + "---\n" + valid, strings.ReplaceAll(valid, digest, "1e9"), strings.ReplaceAll(valid, "alice", "{}"),
		strings.ReplaceAll(valid, "2026-01-31T12:00:00Z", "null"), strings.ReplaceAll(valid, "approvals:", "approvals: &a"), valid + "  1: a\n  \"1\": b\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := render.ReadApprovals(text)
		if err != nil {
			return
		}
		given := 0
		for _, a := range all {
			given += len(a.Digests)
			if a.By == "" || a.Why == "" || a.Expires.IsZero() || len(a.Digests) == 0 {
				t.Errorf("%q is accepted: %+v", text, a)
			}
			for _, d := range a.Digests {
				if !render.IsApprovalDigest(d) {
					t.Errorf("%q is accepted with the digest %q", text, d)
				}
			}
		}
		if given > render.MostApproved {
			t.Errorf("%d digests are accepted", given)
		}
	})
}
