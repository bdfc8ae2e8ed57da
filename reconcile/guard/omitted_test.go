package guard

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStillIn(t *testing.T) {
	secret := manifest.ID{Kind: "Secret", Namespace: "team", Name: "db"}
	as := func(why catalogue.Why, path string, id manifest.ID) catalogue.Omitted {
		return catalogue.Omitted{Why: why, Origin: manifest.Origin{Path: path, Line: 1}, ID: id}
	}
	cases := map[string]struct {
		reason  string
		omitted catalogue.Omitted
		object  manifest.ID
		path    string
		want    bool
	}{
		"SameIdentity": {"The Secret is now encrypted, and an older inventory has no path.", as(catalogue.Encrypted, "a.yaml", secret), secret, "", true},
		"MovedToo":     {"The file has another name, but the Secret does not.", as(catalogue.Encrypted, "b.yaml", secret), secret, "a.yaml", true},
		"NamespaceLeftOut": {
			"Without a namespace, the Secret is in the default namespace.", as(catalogue.Encrypted, "a.yaml", manifest.ID{Kind: "Secret", Name: "db"}),
			manifest.ID{Kind: "Secret", Namespace: "default", Name: "db"}, "", true,
		},
		"OtherNamespace": {
			"A Secret without a namespace is not one of another namespace.", as(catalogue.Encrypted, "a.yaml", manifest.ID{Kind: "Secret", Name: "db"}), secret, "a.yaml", false,
		},
		"NamespaceOfClusterScoped": {
			"The API server ignores the namespace of a cluster-scoped object.", as(catalogue.LocalOnly, "a.yaml", manifest.ID{Kind: "Namespace", Namespace: "default", Name: "a"}),
			manifest.ID{Kind: "Namespace", Name: "a"}, "", true,
		},
		"OtherName":      {"The document declares something else, so the object was removed.", as(catalogue.Encrypted, "a.yaml", manifest.ID{Kind: "Secret", Namespace: "team", Name: "new"}), secret, "a.yaml", false},
		"OtherGroup":     {"A kind with another group is another kind.", as(catalogue.OtherTool, "a.yaml", manifest.ID{Group: "example.org", Kind: "Secret", Namespace: "team", Name: "db"}), secret, "a.yaml", false},
		"File":           {"An ignored file is not read.", as(catalogue.Ignored, "apps/a.yaml", manifest.ID{}), secret, "apps/a.yaml", true},
		"Directory":      {"The directory became a submodule.", as(catalogue.Submodule, "apps", manifest.ID{}), secret, "apps/db/a.yaml", true},
		"Image":          {"The paths of documents in an image are below the image's path.", as(catalogue.Ignored, "toy.xpkg", manifest.ID{}), secret, "toy.xpkg/package.yaml", true},
		"OtherFile":      {"Another file may have the same prefix.", as(catalogue.Ignored, "apps/a", manifest.ID{}), secret, "apps/a.yaml", false},
		"OtherDirectory": {"Another directory may have the same prefix.", as(catalogue.Symlink, "apps", manifest.ID{}), secret, "apps2/a.yaml", false},
		"NoPath":         {"An inventory without paths only has identities.", as(catalogue.Ignored, "a.yaml", manifest.ID{}), secret, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got := stillIn([]catalogue.Omitted{as(catalogue.NotManifest, "unrelated.yaml", manifest.ID{}), tc.omitted}, tc.object, tc.path, "default")
			if got != tc.want {
				t.Errorf("%s: stillIn(...) = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestOmitted proves, for every way in which a commit can skip an object's file, that the object is retained, reported and kept in
// the inventory. Once the file is really removed, the object is pruned.
func TestOmitted(t *testing.T) {
	const text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: default\n"
	const kept = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  namespace: default\n"
	cases := map[string]struct {
		reason string
		head   map[string]string
		want   string // part of the reason; "" if the object is pruned
	}{
		"Removed":       {"A user who deletes the file wants the object deleted.", nil, ""},
		"Replaced":      {"The file declares another object.", map[string]string{"apps/db.yaml": strings.ReplaceAll(text, "name: db", "name: other")}, ""},
		"Encrypted":     {"SOPS encrypts values but not the name.", map[string]string{"apps/db.yaml": text + "sops: {mac: x}\n"}, "encrypted with SOPS"},
		"EncryptedAll":  {"SOPS encrypts everything.", map[string]string{"apps/db.yaml": "apiVersion: ENC[x]\nkind: ENC[x]\nsops: {mac: x}\n"}, "encrypted with SOPS"},
		"EncryptedList": {"An item of a List is found by its identity.", map[string]string{"list.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: db}\n  sops: {mac: x}\n"}, "encrypted with SOPS"},
		"Local":         {"The annotation prevents that the object is applied.", map[string]string{"apps/db.yaml": text + "  annotations: {config.kubernetes.io/local-config: \"true\"}\n"}, "local configuration"},
		"Ignored":       {".headgateignore lists the file.", map[string]string{"apps/db.yaml": text, ".headgateignore": "db.yaml\n"}, "listed in .headgateignore"},
		"IgnoredBelow":  {".headgateignore lists the directory.", map[string]string{"apps/db.yaml": text, ".headgateignore": "/apps/\n"}, "listed in .headgateignore"},
		"Capitals":      {"The extension is not one of a manifest.", map[string]string{"apps/db.YAML": text}, "file name extension in capitals"},
		"CaseOfPath":    {"The file name also changed its case.", map[string]string{"apps/DB.yaml": text, ".headgateignore": "DB.yaml\n"}, "listed in .headgateignore"},
		"Hidden":        {"The name begins with a dot.", map[string]string{"apps/.db.yaml": text}, "name that begins with a dot"},
		"HiddenBelow":   {"The name of the directory begins with a dot.", map[string]string{".apps/db.yaml": text}, "name that begins with a dot"},
		"Suffix":        {"The extension is not one of a manifest.", map[string]string{"apps/db.yaml.disabled": text}, "another extension after .yaml"},
		"Backup":        {"An editor renamed the file.", map[string]string{"apps/db.yaml~": text}, "another extension after .yaml"},
		"MovedAway":     {"The file moved into a directory that is not read.", map[string]string{"archive/old.yaml": text, ".headgateignore": "/archive/\n"}, "listed in .headgateignore"},
		"MovedRenamed":  {"The file moved into a directory that is not read, and declares another object.", map[string]string{"archive/old.yaml": strings.ReplaceAll(text, "name: db", "name: other"), ".headgateignore": "/archive/\n"}, ""},
		"MovedBroken":   {"Nothing shows what the file declared.", map[string]string{".old.yaml": "{{ x }}"}, ""},
		"MovedKustomization": {
			"A kustomization moved into a directory that is not read. Its own files do not show the name.", map[string]string{
				".apps/kustomization.yaml": "namePrefix: d\nresources: [base.yaml]\n", ".apps/base.yaml": strings.ReplaceAll(text, "name: db", "name: b"),
			}, "name that begins with a dot",
		},
		"Example": {"The object moved to the examples of a package.", map[string]string{
			"p/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: a}\n", "p/examples/db.yaml": text,
		}, "example, test or build input"},
		"NotManifest":  {"The file has other content.", map[string]string{"apps/db.yaml": "a: b\n"}, "no Kubernetes manifest"},
		"Program":      {"The file now belongs to a program.", map[string]string{"apps/db.yaml": "apiVersion: v1\nkind: Config\nclusters: []\n"}, "for a program"},
		"Package":      {"The directory became a package, which does not install the object.", map[string]string{"apps/db.yaml": text, "apps/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: a}\n"}, "not installed from a package"},
		"PackageAbove": {"A directory above became a package.", map[string]string{"apps/db.yaml": text, "crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: a}\n"}, "not installed from a package"},
		"Kustomized":   {"A kustomization that does not list the file removes the object.", map[string]string{"apps/db.yaml": text, "apps/kustomization.yaml": "resources: [kept.yaml]\n", "apps/kept.yaml": strings.ReplaceAll(kept, "kept", "other")}, ""},
		"KustomizedLocally": {
			"A kustomization drops local configuration.", map[string]string{
				"apps/db.yaml": text + "  annotations: {config.kubernetes.io/local-config: \"true\"}\n", "apps/kustomization.yaml": "resources: [db.yaml]\n",
			}, "local configuration",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.head = with(tc.head, "kept.yaml", kept)
			base := given.Desired(t, render.OwnerHeadgate, map[string]string{"apps/db.yaml": text, "kept.yaml": kept})
			head := given.Desired(t, render.OwnerHeadgate, tc.head)
			seen, err := baseline.Baseline{Base: base, Sync: given.Sync}.Observe(t.Context(), head)
			if err != nil {
				t.Fatal(err)
			}
			p := given.Computed(t, head, seen, Guarding{}.Guards()...)
			id := manifest.ID{Kind: "Secret", Namespace: "default", Name: "db"}
			i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == id })
			if i < 0 {
				t.Fatalf("%s\nno step on %s", tc.reason, id)
			}
			s := p.Steps[i]
			switch {
			case tc.want == "" && s.Action != plan.Prune:
				t.Errorf("%s\ngot %s: %s", tc.reason, s.Action, s.Reason)
			case tc.want == "":
			case s.Action != plan.Keep || s.Cause != plan.Retain || s.Guard != Omitted || !strings.Contains(Sentence(s.Reason), tc.want):
				t.Errorf("%s\ngot %s (%s, guard %q): %s", tc.reason, s.Action, s.Cause, s.Guard, s.Reason)
			}
			if _, there := tc.head["apps/db.yaml"]; tc.want != "" && !there && !strings.Contains(strings.ToLower(Sentence(s.Reason)), "from apps/db.yaml") {
				t.Errorf("%s\nthe reason does not name the file that it was applied from: %s", tc.reason, Sentence(s.Reason))
			}
			if _, stays := record.Settled(p, seen.Inventory, nil).Entries[id]; !stays {
				t.Error("it has to stay in the inventory until it is gone")
			}
		})
	}
}

func with(files map[string]string, name, text string) map[string]string {
	all := map[string]string{name: text}
	maps.Copy(all, files)
	return all
}

// TestPaths proves that the inventory records the files of objects once: neither an older inventory nor a moved file causes more
// than one write.
func TestPaths(t *testing.T) {
	files := map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"}
	want := given.Desired(t, render.OwnerHeadgate, files)
	seen := given.Owning(t)
	id := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	for _, o := range want.Objects {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.ID.Namespace, Name: o.ID.Name, UID: "1",
			Labels: map[string]string{inventory.SyncLabel: given.Sync.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: given.Sync.Key()},
		}}
		seen.Objects[o.ID] = live
		seen.Inventory.Entries[o.ID] = plan.Applied(live, given.Sync.Digest(o))
	}
	seen.Inventory.Owner, seen.Inventory.ResourceVersion = want.Owner, "1"

	p := given.Computed(t, want, seen, Guarding{}.Guards()...)
	if p.Writes() || !p.Remembers() {
		t.Errorf("an inventory without paths is written once, and nothing else: writes %t, remembers %t", p.Writes(), p.Remembers())
	}
	seen.Inventory = record.Settled(p, seen.Inventory, nil)
	if got := seen.Inventory.Entries[id].Path; got != "a.yaml" {
		t.Errorf("the path is %q, want a.yaml", got)
	}
	if p = given.Computed(t, want, seen, Guarding{}.Guards()...); p.Remembers() {
		t.Error("it is written in every pass")
	}
	moved := given.Desired(t, render.OwnerHeadgate, map[string]string{"b/c.yaml": files["a.yaml"]})
	if p = given.Computed(t, moved, seen, Guarding{}.Guards()...); !p.Remembers() {
		t.Error("a file that moved has to be recorded")
	}
	seen.Inventory = record.Settled(p, seen.Inventory, nil)
	if got := seen.Inventory.Entries[id].Path; got != "b/c.yaml" {
		t.Errorf("the path is %q, want b/c.yaml", got)
	}
	if p = given.Computed(t, moved, seen, Guarding{}.Guards()...); p.Remembers() {
		t.Error("a file that moved is written in every pass")
	}
}

// TestSkippedPolicy proves that nothing is deactivated while a policy is skipped, however often the inventory is written in the
// meantime.
func TestSkippedPolicy(t *testing.T) {
	const policy = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata:\n  name: team\nspec:\n  activate: [buckets.example.org]\n"
	base := given.Desired(t, render.OwnerHeadgate, map[string]string{"policies/team.yaml": policy})
	cases := map[string]struct {
		reason string
		head   map[string]string
		goes   bool
	}{
		"Removed":     {"A user who deletes the policy wants the definition deactivated.", nil, true},
		"OtherFile":   {"The skipped file was not a policy.", map[string]string{"docs/values.yaml": "a: b"}, true},
		"Ignored":     {".headgateignore lists the policy's file.", map[string]string{"policies/team.yaml": policy, ".headgateignore": "team.yaml"}, false},
		"Below":       {".headgateignore lists the policy's directory.", map[string]string{"policies/team.yaml": policy, ".headgateignore": "policies/"}, false},
		"Encrypted":   {"The policy's file is now encrypted with SOPS.", map[string]string{"policies/team.yaml": policy + "sops: {mac: x}\n"}, false},
		"NotManifest": {"The file contains only one key of a manifest.", map[string]string{"policies/team.yaml": "kind: Policy\n"}, false},
		"Capitals":    {"The extension is not one of a manifest.", map[string]string{"policies/team.YAML": policy}, false},
		"Moved":       {"The policy's file moved and is encrypted with SOPS.", map[string]string{"secrets/team.yaml": policy + "sops: {mac: x}\n"}, false},
		"MovedLocal":  {"The policy's file moved, and the annotation prevents that it is applied.", map[string]string{"local/team.yaml": strings.Replace(policy, "metadata:", "metadata:\n  annotations: {config.kubernetes.io/local-config: \"true\"}", 1)}, false},
		"Hidden":      {"The policy's file moved into a directory whose name begins with a dot.", map[string]string{".old/team.yaml": policy}, false},
		"HiddenOther": {"The file of another policy is in such a directory.", map[string]string{".old/other.yaml": strings.Replace(policy, "team", "other", 1)}, true},
		"OtherPolicy": {"The skipped policy was never applied.", map[string]string{"secrets/other.yaml": strings.Replace(policy, "team", "other", 1) + "sops: {mac: x}\n"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			head := given.Desired(t, render.OwnerHeadgate, tc.head)
			seen, err := baseline.Baseline{Base: base, Sync: given.Sync, Terms: facts.Terms{Deactivate: true}}.Observe(t.Context(), head)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"policies/team.yaml"}, seen.Inventory.Record.Policies); diff != "" {
				t.Fatalf("recorded (-want +got):\n%s", diff)
			}
			for pass := range 2 {
				p := given.Computed(t, head, seen, Guarding{}.Guards()...)
				goes := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ID == plan.CRD("buckets.example.org") && s.Deactivates })
				if goes != tc.goes {
					t.Errorf("%s\npass %d: taken back: %t", tc.reason, pass, goes)
				}
				if noted := slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool { return f.Rule == "policy-skipped" }); noted == tc.goes {
					t.Errorf("%s\npass %d: noted: %t", tc.reason, pass, noted)
				}
				if !tc.goes {
					seen.Inventory = record.Settled(p, seen.Inventory, nil)
				}
			}
		})
	}
}

// The inventory records the files that declare policies, so that a later commit that skips one of them deactivates nothing. If
// there are too many, they are recorded as one entry.
func TestPolicyFilesAreRecorded(t *testing.T) {
	want := given.Desired(t, render.OwnerHeadgate, map[string]string{"policies/team.yaml": given.Policy("team", given.Buckets)})
	p, none := given.Computed(t, want, given.Owning(t), Guarding{}.Guards()...), inventory.Inventory{Sync: given.Sync}
	for what, inv := range map[string]inventory.Inventory{"before the writes": record.Intent(p, none), "after them": record.Settled(p, none, nil)} {
		if diff := cmp.Diff([]string{"policies/team.yaml"}, inv.Record.Policies); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	skipped := []catalogue.Omitted{{Origin: manifest.Origin{Path: "any.yaml"}, Why: "ignored"}}
	for reason, tc := range map[string]struct {
		recorded []string
		found    bool
	}{
		"it was a policy":                     {[]string{"any.yaml"}, true},
		"it was none":                         {[]string{"other.yaml"}, false},
		"there were too many to record":       {[]string{inventory.Anywhere}, true},
		"no policies were recorded, or exist": {nil, false},
	} {
		if _, found := inventory.SkippedPolicy(render.Desired{Omitted: skipped}, inventory.Record{Policies: tc.recorded}); found != tc.found {
			t.Errorf("%s: found %t", reason, found)
		}
	}
}

// A definition that the commit pauses is not deactivated, although nothing activates it in the meantime.
func TestPausedDefinitionOfTheCommit(t *testing.T) {
	base := given.Desired(t, render.OwnerHeadgate, map[string]string{"policy.yaml": given.Policy("team", given.Buckets)})
	for _, paused := range []bool{false, true} {
		head := given.Desired(t, render.OwnerHeadgate, nil)
		for _, d := range head.Definitions {
			d.Definition.Paused = paused
		}
		seen, err := baseline.Baseline{Base: base, Sync: given.Sync, Terms: facts.Terms{Deactivate: true}}.Observe(t.Context(), head)
		if err != nil {
			t.Fatal(err)
		}
		p := given.Computed(t, head, seen, Guarding{}.Guards()...)
		if taken := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ID == plan.CRD(given.Buckets) && s.Deactivates }); taken == paused {
			t.Errorf("paused %t: taken back %t", paused, taken)
		}
	}
}

// An object that Crossplane will install with a package stays until Crossplane has taken it over.
func TestLeftToCrossplane(t *testing.T) {
	id := manifest.ID{Group: "apiextensions.crossplane.io", Kind: "Composition", Name: "a"}
	for name, stays := range map[string]bool{"a": true, "b": false} {
		left := []render.Left{{ID: manifest.ID{Group: id.Group, Kind: id.Kind, Name: name}, Package: "platform"}}
		if r := omitted(plan.Step{Action: plan.Prune, ID: id}, draft.Case{Want: render.Desired{Left: left}}); (r.Response() == plan.Retained) != stays {
			t.Errorf("the package holds %s: %+v", name, r)
		}
	}
}
