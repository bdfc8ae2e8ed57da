package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

func newRender(t *terminal) *cobra.Command {
	var (
		from   sourceFlags
		how    renderFlags
		format = oneOf("yaml", "json")
	)
	cmd := &cobra.Command{
		Use:   "render [SOURCE] [flags]",
		Short: "Print the objects that a commit wants in a cluster",
		Long: `Render prints the objects that a commit wants in a cluster: the CRDs of the active
definitions, and everything else that the commit declares. With --crd-owner=crossplane it
prints what Crossplane needs to create the CRDs itself. Otherwise it leaves out policies and
providers, because a cluster without Crossplane does not serve them. The same commit always
renders to the same bytes. Only manifests go to standard output, so render can be the
generate command of an Argo CD plugin, or its output can go to kubectl apply.

` + aboutSource + `

Exit codes: 0 rendered, 1 not rendered, 2 wrong usage.`,
		Example: `  headgate render ./platform
  headgate render --repo https://example.org/platform.git --ref v1.4.0 --path clusters/prod
  headgate render . | kubectl apply --server-side -f -`,
		Args: takes(0, 1, "--path names a directory below SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, ref, err := t.source(&from, args)
			if err != nil {
				return err
			}
			s, err := how.rendering()
			if err != nil {
				return err
			}
			r, err := t.wire(s, source, t.surroundings(&from, source), cluster.Options{})
			if err != nil {
				return err
			}
			want, err := r.Render(cmd.Context(), ref)
			if err != nil {
				return err
			}
			if err := want.Problems().OrNil(); err != nil {
				return err
			}
			if err := want.Nothing(); err != nil {
				return err
			}
			objects := required(want.Objects)
			how := yamlStream
			if format.value == "json" {
				how = jsonList
			}
			t.progress.Stop()
			err = how.writeTexts(t.out, len(objects), func(i int) (string, error) {
				return objects[i].Text(format.value, how.encoded)
			})
			if err != nil {
				return err
			}
			return t.rendered(want, objects)
		},
	}
	from.addTo(cmd)
	how.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// required returns the objects that are not optional. An optional object waits until its API is served.
func required(objects []render.Object) []render.Object {
	var kept []render.Object
	for _, o := range objects {
		if !o.Optional {
			kept = append(kept, o)
		}
	}
	return kept
}

// findings prints findings to standard error for the user.
func (t *terminal) findings(found []manifest.Finding) {
	for _, f := range found {
		if f.Severity == manifest.Note && t.verbose == 0 {
			continue
		}
		colour := yellow
		if f.Severity == manifest.Error {
			colour = red
		}
		line := fmt.Sprintf("%s: %s", f.Origin, f.Message)
		if f.Fix != "" {
			line += "; " + f.Fix
		}
		fmt.Fprintf(t.err, "%s %s\n", t.paint(string(f.Severity)+":", colour), printable(line))
	}
}

// rendered prints the findings, the skipped documents and a summary of a render to standard error.
func (t *terminal) rendered(want render.Desired, objects []render.Object) error {
	t.findings(slices.Concat(want.Findings, lint.Findings(want)))
	for _, why := range slices.Sorted(maps.Keys(want.Skipped)) {
		if t.verbose > 0 || why.Surprises() {
			fmt.Fprintf(t.err, "skipped: %d × %s\n", want.Skipped[why], why)
		}
	}
	parts := []string{manifest.Count(len(objects), "object")}
	if len(want.Definitions)+want.Unknown() > 0 {
		parts = append(parts, numbers(want).String())
	}
	return t.summary(want, parts...)
}

// summary prints the last line of a verb that reads a commit.
func (t *terminal) summary(want render.Desired, parts ...string) error {
	if want.Revision != "" {
		parts = append(parts, want.Revision[:min(len(want.Revision), 12)])
	}
	_, err := fmt.Fprintln(t.err, "Summary: "+strings.Join(parts, " · "))
	return err
}

func numbers(want render.Desired) report.Summary {
	n := report.Summary{Definitions: len(want.Definitions), Unknown: want.Unknown()}
	for _, d := range want.Definitions {
		if d.Active {
			n.Active++
		}
	}
	n.Inactive = n.Definitions - n.Active
	return n
}
