package reconcile

import (
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
)

// A preview lists an object that changes only because another one does.
func TestPreviewsShowWhatChangesWithAnother(t *testing.T) {
	const (
		config    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: default}\ndata: {k: VALUE}\n---\n"
		secret    = "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, namespace: default}\nstringData: {k: VALUE}\n---\n"
		takes     = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n  namespace: default\n  annotations:\n    config.kubernetes.io/apply-time-mutation: |\n      - {sourceRef: {kind: KIND, name: FROM}, sourcePath: $.data.k, targetPath: $.data.k, token: x}\ndata: {k: x}\n---\n"
		protects  = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: user\n  namespace: default\n  annotations:\n    config.kubernetes.io/depends-on: /namespaces/default/ConfigMap/used\n    headgate.dev/protect-dependencies: \"true\"\n---\n"
		old, next = "old-value", "new-value"
	)
	of := func(template string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(template) }
	source := func(value string) string { return of(config, "NAME", "source", "VALUE", value) }
	cases := map[string]struct {
		reason     string
		base, head string
		want       []string // name, action and changes
		hides      string
	}{
		"Value": {
			reason: "The value of the other object is shown.",
			base:   source(old) + of(takes, "NAME", "it", "KIND", "ConfigMap", "FROM", "source"), head: source(next) + of(takes, "NAME", "it", "KIND", "ConfigMap", "FROM", "source"),
			want: []string{`it update data.k: "old-value" → "new-value"`, `source update data.k: "old-value" → "new-value"`},
		},
		"Chain": {
			reason: "The value may come from an object that takes it itself.",
			base:   source(old) + of(takes, "NAME", "a", "KIND", "ConfigMap", "FROM", "b") + of(takes, "NAME", "b", "KIND", "ConfigMap", "FROM", "source"),
			head:   source(next) + of(takes, "NAME", "a", "KIND", "ConfigMap", "FROM", "b") + of(takes, "NAME", "b", "KIND", "ConfigMap", "FROM", "source"),
			want:   []string{`a update data.k: "old-value" → "new-value"`, `b update data.k: "old-value" → "new-value"`, `source update data.k: "old-value" → "new-value"`},
		},
		"Secret": {
			reason: "A value of a Secret is listed and not shown.", hides: "-value",
			base: of(secret, "NAME", "source", "VALUE", old) + of(takes, "NAME", "it", "KIND", "Secret", "FROM", "source"), head: of(secret, "NAME", "source", "VALUE", next) + of(takes, "NAME", "it", "KIND", "Secret", "FROM", "source"),
			want: []string{"it update data.k", "source update data.k"},
		},
		"SecretNoMore": {
			reason: "The value was copied by way of another object, and the reference leaves.", hides: "-value",
			base: of(secret, "NAME", "source", "VALUE", old) + of(takes, "NAME", "a", "KIND", "ConfigMap", "FROM", "b") + of(takes, "NAME", "b", "KIND", "Secret", "FROM", "source"),
			head: of(secret, "NAME", "source", "VALUE", old) + of(config, "NAME", "a", "VALUE", "x") + of(takes, "NAME", "b", "KIND", "Secret", "FROM", "source"),
			want: []string{"a update data.k metadata.annotations"},
		},
		"Elsewhere": {
			reason: "The source is only in the cluster, so its value is the same before and after.",
			base:   of(takes, "NAME", "it", "KIND", "ConfigMap", "FROM", "source"), head: of(takes, "NAME", "it", "KIND", "ConfigMap", "FROM", "source"),
		},
		"Unchanged": {
			reason: "Another field of the source changes.",
			base:   source(old) + of(takes, "NAME", "it", "KIND", "ConfigMap", "FROM", "source"), head: strings.Replace(source(old), "{k:", "{more: here, k:", 1) + of(takes, "NAME", "it", "KIND", "ConfigMap", "FROM", "source"),
			want: []string{`source update data.more: (none) → "here"`},
		},
		"Protected": {
			reason: "A new dependency gets the finalizer of Headgate.",
			base:   of(config, "NAME", "used", "VALUE", old), head: of(config, "NAME", "used", "VALUE", old) + protects,
			want: []string{`used update metadata.finalizers: (none) → ["headgate.dev/protected"]`, "user create"},
		},
		"ProtectedBefore": {
			reason: "The dependency has it already.",
			base:   of(config, "NAME", "used", "VALUE", old) + protects, head: of(config, "NAME", "used", "VALUE", old) + protects,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := commits{"base": fstest.MapFS{"a.yaml": {Data: []byte(tc.base)}}, "head": fstest.MapFS{"a.yaml": {Data: []byte(tc.head)}}}
			r := Reconciler{Source: source, Sync: inventory.Sync{Name: "platform"}, Options: render.Options{Owner: render.OwnerHeadgate}}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range made.Steps {
				if s.Action == plan.Keep {
					continue
				}
				line := s.ID.Name + " " + string(s.Action)
				for _, c := range s.Changes {
					if tc.hides != "" && strings.Contains(c.From+c.To, tc.hides) {
						t.Errorf("%s shows %s → %s", s.ID, c.From, c.To)
					}
					if line += " " + c.Path; tc.hides == "" {
						line += ": " + c.From + " → " + c.To
					}
				}
				got = append(got, strings.ReplaceAll(line, ":  →", ": (none) →"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
