package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const lostMeta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-aws\nspec:\n  capabilities: [safe-start]\n"

// A tree is the files of a commit. As an edit of another tree, nil removes a file.
type tree map[string]*string

func file(text string, args ...any) *string { return new(fmt.Sprintf(text, args...)) }

// awsTree returns a repository with a package of twelve definitions. One of them is active and has an example object.
func awsTree(edits ...tree) tree {
	files := tree{
		"aws/crossplane.yaml":       file(lostMeta),
		"aws/examples/bucket.yaml":  file("apiVersion: aws.example.org/v1\nkind: T1\nmetadata: {name: example}\n"),
		"policies/team.yaml":        file("%s", given.Policy("team", "t1.aws.example.org")),
		"platform/config.yaml":      file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\n"),
		"aws/package/t.yaml":        file("%s", lostCRDs(0, 12)),
		"gcp/crossplane.yaml":       file("%s", strings.ReplaceAll(lostMeta, "aws", "gcp")),
		"gcp/package/external.yaml": file("%s", strings.ReplaceAll(lostCRDs(0, 1), "aws", "gcp")),
	}
	for _, edit := range edits {
		maps.Copy(files, edit)
	}
	return files
}

func lostCRDs(from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: t%d.aws.example.org
spec:
  group: aws.example.org
  names: {kind: T%d, plural: t%d}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, i, i, i))
	}
	return strings.Join(all, "---\n")
}

func (files tree) render(t *testing.T, how render.Options) render.Desired {
	t.Helper()
	in := render.Input{Files: fstest.MapFS{}}
	for name, data := range files {
		if data != nil {
			in.Files.(fstest.MapFS)[name] = &fstest.MapFile{Data: []byte(*data)}
		}
	}
	want, err := render.Render(in, how)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// A placeOfPasses is a cluster that stores the results of passes.
type placeOfPasses struct {
	inventory inventory.Inventory
	objects   map[manifest.ID]*metav1.PartialObjectMetadata
	failing   map[manifest.ID]bool // writes that fail
	approvals []string
	killed    bool // a pass ends before it settles the inventory, like every round before the last one
}

// pass makes one pass of a commit and returns its plan.
func (c *placeOfPasses) pass(t *testing.T, want render.Desired) plan.Plan {
	t.Helper()
	seen := given.Seen(facts.Upstream{})
	seen.Natural, seen.Approvals = want.Owner, approval.Given{inventory.OnSync: approval.Typed(c.approvals...)}
	seen.Kinds = maps.Clone(seen.Kinds)
	maps.Copy(seen.Kinds, given.Kinds) // objects of unserved kinds are not created
	seen.Inventory, seen.Objects = c.inventory, maps.Clone(c.objects)
	seen.Trials, seen.Answers = map[manifest.ID]facts.Trial{}, question.Answers{}
	for id := range c.inventory.Entries {
		seen.Answers[question.Dependents{Of: id}] = question.Counted{}
	}
	p, err := given.Compute(want, seen, Guarding{MaxPrunes: 100, PruneInstances: true}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	var done []plan.Outcome
	for _, s := range p.Steps {
		o := plan.Outcome{ID: s.ID, Action: s.Action, Digest: s.Digest, UID: types.UID(s.ID.String())}
		switch {
		case !s.Writes():
			continue
		case c.failing[s.ID]:
			o.Err = given.ErrBoom
		case s.Action == plan.Prune:
			delete(c.objects, s.ID)
		default:
			content, err := s.Object()
			if err != nil {
				t.Fatal(err)
			}
			c.objects[s.ID] = given.Live(content, types.UID(s.ID.String()))
			o.Mark = inventory.Mark(c.objects[s.ID])
		}
		done = append(done, o)
	}
	if c.killed {
		c.inventory = record.Intent(p, c.inventory)
	} else {
		c.inventory = record.Settled(p, c.inventory, done)
	}
	return p
}

func newPlace() *placeOfPasses {
	return &placeOfPasses{
		inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1"}, objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, failing: map[manifest.ID]bool{},
	}
}

// lostSteps returns the number of steps that the guard "package lost" holds, by action, and the other writes of the plan.
func lostSteps(p plan.Plan) (held map[plan.Action]int, writes []string) {
	held = map[plan.Action]int{}
	for _, s := range p.Steps {
		switch {
		case s.Action == plan.Hold && s.Guard == PackageLost:
			held[s.Would]++
		case s.Action == plan.Hold:
			writes = append(writes, "hold "+string(s.Guard)+" "+s.ID.Name)
		case s.Writes():
			writes = append(writes, string(s.Action)+" "+s.ID.Kind+" "+s.ID.Name)
		}
	}
	slices.Sort(writes)
	return held, writes
}

func TestPackageLost(t *testing.T) {
	moved := func(to string) tree {
		return tree{"aws/crossplane.yaml": nil, "aws/examples/bucket.yaml": nil, "aws/package/t.yaml": nil, to + "/package/t.yaml": file("%s", lostCRDs(0, 12))}
	}
	all := map[plan.Action]int{plan.Create: 12} // eleven CRDs and an example object; the active CRD stays unchanged
	cases := map[string]struct {
		reason string
		owner  render.Owner
		edit   tree
		how    render.Options
		held   map[plan.Action]int
		writes []string
	}{
		"Deleted":      {"Without crossplane.yaml, eleven CRDs and an example would be created.", "", tree{"aws/crossplane.yaml": nil}, render.Options{}, all, nil},
		"Renamed":      {"A file crossplane.yml does not declare a package.", "", tree{"aws/crossplane.yaml": nil, "aws/crossplane.yml": file(lostMeta)}, render.Options{}, all, nil},
		"Emptied":      {"crossplane.yaml exists, but contains no object.", "", tree{"aws/crossplane.yaml": file("# later\n")}, render.Options{}, all, nil},
		"Ignored":      {"Only crossplane.yaml is ignored.", "", tree{".headgateignore": file("crossplane.yaml\n!gcp/crossplane.yaml\n")}, render.Options{}, all, nil},
		"OtherObjects": {"Objects of other directories are applied.", "", tree{"aws/crossplane.yaml": nil, "platform/more.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: a}\n")}, render.Options{}, all, []string{"create ConfigMap b"}},
		"NewOnes":      {"CRDs that the package never declared are held, too.", "", tree{"aws/crossplane.yaml": nil, "aws/package/more.yaml": file("%s", lostCRDs(12, 14))}, render.Options{}, map[plan.Action]int{plan.Create: 14}, nil},
		"Moved":        {"A package that was moved is still a package.", "", awsTree(moved("vendor/aws"), tree{"vendor/aws/crossplane.yaml": file(lostMeta)}), render.Options{}, map[plan.Action]int{}, nil},
		"MovedDeeper":  {"The package was moved into a directory below the old one.", "", awsTree(moved("aws/s3"), tree{"aws/s3/crossplane.yaml": file(lostMeta), "aws/notes.txt": file("x")}), render.Options{}, map[plan.Action]int{}, nil},
		"MovedAndLost": {"The directory was renamed, and contains no crossplane.yaml.", "", moved("vendor/aws"), render.Options{}, map[plan.Action]int{plan.Create: 11}, nil},
		"Declared": {"The Sync declares the directory as a package.", "", tree{"aws/crossplane.yaml": nil}, render.Options{
			Packages: []catalogue.Declared{{Path: "aws", Name: "provider-aws", SafeStart: true}},
		}, map[plan.Action]int{}, nil},
		"Gone": {"The whole package is deleted.", "", tree{"aws/crossplane.yaml": nil, "aws/examples/bucket.yaml": nil, "aws/package/t.yaml": nil}, render.Options{}, map[plan.Action]int{}, []string{"prune CustomResourceDefinition t1.aws.example.org"}},
		"Left": {"The whole package is ignored, and its live objects stay.", "", tree{".headgateignore": file("/aws/\n")}, render.Options{}, map[plan.Action]int{}, nil},
		"SwallowedByConfiguration": {
			"A Configuration installs no CRDs, so the CRDs of the package would be pruned.", "",
			tree{"aws/crossplane.yaml": nil, "crossplane.yaml": file("apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: all}\n"), "gcp/crossplane.yaml": nil, "platform/config.yaml": nil}, render.Options{}, map[plan.Action]int{plan.Prune: 1}, []string{"hold empty a"},
		},
		"Built": {
			"A kustomization above the package reads its files as plain objects.", "",
			tree{"aws/crossplane.yaml": nil, "aws/kustomization.yaml": file("resources: [package/t.yaml]\n")}, render.Options{}, map[plan.Action]int{plan.Create: 11}, nil,
		},
		"MovedOut": {
			"The package remains, but some of its definitions were moved elsewhere as plain CRDs.", "",
			tree{"aws/package/t.yaml": file("%s", lostCRDs(0, 6)), "platform/t.yaml": file("%s", lostCRDs(6, 12))}, render.Options{}, map[plan.Action]int{plan.Create: 6}, nil,
		},
		"MRDs": {"The MRDs of the package would be pruned, and CRDs created.", render.OwnerCrossplane, tree{"aws/crossplane.yaml": nil}, render.Options{}, map[plan.Action]int{plan.Create: 13, plan.Prune: 12}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.owner == "" {
				tc.owner = render.OwnerHeadgate
			}
			tc.how.Owner = tc.owner
			c := newPlace()
			base, head := awsTree().render(t, render.Options{Owner: tc.owner}), awsTree(tc.edit).render(t, tc.how)
			c.pass(t, base)
			if diff := cmp.Diff([]string{"aws", "gcp"}, c.inventory.Record.Packages); diff != "" {
				t.Fatalf("the inventory records the packages (-want +got):\n%s", diff)
			}
			for again, killed := range []bool{true, true, false, true, false} { // the hold stays in later rounds and passes
				c.killed = killed
				held, writes := lostSteps(c.pass(t, head))
				if diff := cmp.Diff(tc.held, held); diff != "" {
					t.Errorf("%s\nheld (-want +got):\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.writes, writes); diff != "" && again == 0 {
					t.Errorf("%s\nwrites (-want +got):\n%s", tc.reason, diff)
				}
			}

			seen, err := baseline.Baseline{Base: base, Sync: given.Sync}.Observe(t.Context(), head)
			if err != nil {
				t.Fatal(err)
			}
			preview, err := given.Compute(head, seen, Guarding{MaxPrunes: 100, PruneInstances: true}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			if held, _ := lostSteps(preview); !maps.Equal(held, tc.held) {
				t.Errorf("%s\na preview holds the same: %v, want %v", tc.reason, held, tc.held)
			}
		})
	}
}

func TestPackageLostIsApproved(t *testing.T) {
	c := newPlace()
	c.pass(t, awsTree().render(t, render.Options{}))
	lost := awsTree(tree{"aws/crossplane.yaml": nil}).render(t, render.Options{})
	p := c.pass(t, lost)
	if p.Approval == nil || p.Approval.Steps != 12 {
		t.Fatalf("it can be approved: %+v", p.Approval)
	}
	c.approvals = []string{p.Approval.Digest}
	c.failing[plan.CRD("t5.aws.example.org")] = true
	c.pass(t, lost)
	if !slices.Contains(c.inventory.Record.Packages, "aws") {
		t.Error("what is approved is remembered until all of it was done")
	}
	delete(c.failing, plan.CRD("t5.aws.example.org"))
	if held, _ := lostSteps(c.pass(t, lost)); held[plan.Create] > 0 {
		t.Errorf("the approval is good for what failed: %v", held)
	}
	if slices.Contains(c.inventory.Record.Packages, "aws") {
		t.Errorf("then it is no package any more: %+v", c.inventory.Record)
	}
	c.approvals = nil
	if len(c.inventory.Record.Definitions) != 1 {
		t.Errorf("what is there now is no definition of it any more: %v", c.inventory.Record.Definitions)
	}
	if held, writes := lostSteps(c.pass(t, awsTree(tree{"aws/crossplane.yaml": nil, "aws/package/more.yaml": file("%s", lostCRDs(12, 13))}).render(t, render.Options{}))); len(held) > 0 || len(writes) != 1 {
		t.Errorf("and its directory is as any other: %v, %v", held, writes)
	}
}

// A package that becomes unreadable in one commit and plain objects in the next is still held.
func TestPackageLostInTwoCommits(t *testing.T) {
	inert := strings.ReplaceAll(lostCRDs(0, 12), "metadata:\n", "metadata:\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n")
	looked := strings.ReplaceAll(lostCRDs(2, 12), "metadata:\n", "metadata:\n  annotations: {headgate.dev/management-policy: Observable}\n")
	for name, first := range map[string]tree{
		"Ignored":      {"aws/crossplane.yaml": nil, ".headgateignore": file("/aws/\n")},
		"Deleted":      {"aws/crossplane.yaml": nil, "aws/package/t.yaml": nil, "aws/examples/bucket.yaml": nil},
		"LocalConfig":  {"aws/crossplane.yaml": nil, "aws/package/t.yaml": file("%s", inert), "aws/examples/bucket.yaml": nil},
		"OnlyTheRest":  {"aws/crossplane.yaml": nil, "aws/package/t.yaml": file("%s", lostCRDs(1, 2)), "aws/examples/bucket.yaml": nil},
		"Observed":     {"aws/crossplane.yaml": nil, "aws/package/t.yaml": file("%s---\n%s", lostCRDs(1, 2), looked), "aws/examples/bucket.yaml": nil},
		"EmptyPackage": {".headgateignore": file("/aws/package/\n")},
		"Moved":        {"aws/crossplane.yaml": nil, "aws/package/t.yaml": nil, "aws/examples/bucket.yaml": nil, "b/crossplane.yaml": file(lostMeta), "b/t.yaml": file("%s", lostCRDs(0, 6))},
		"Failed":       {"aws/crossplane.yaml": nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newPlace()
			c.pass(t, awsTree().render(t, render.Options{}))
			c.pass(t, awsTree(first).render(t, render.Options{}))
			c.pass(t, awsTree(first).render(t, render.Options{}))
			p := c.pass(t, awsTree(tree{"aws/crossplane.yaml": nil}).render(t, render.Options{}))
			made := 0
			for _, s := range p.Steps {
				if s.ID.IsCRD() && s.Action == plan.Create && s.ID != plan.CRD("t1.aws.example.org") || s.ID.Name == "example" && s.Writes() {
					made++
				}
			}
			if made > 0 {
				t.Errorf("%d objects of the lost package are made: %+v", made, c.inventory.Record)
			}
		})
	}
}

// A process that was killed between the intent and the settled inventory has already recorded the package.
func TestPackageIsRecordedBeforeTheFirstWrite(t *testing.T) {
	seen := given.Seen(facts.Upstream{})
	seen.Natural = render.OwnerHeadgate
	seen.Inventory.Record = inventory.Record{Packages: []string{"old"}, Definitions: map[string]string{"old": inventory.FingerprintsOf([]string{"a.example.org"}).String()}}
	p, err := given.Compute(awsTree().render(t, render.Options{}), seen, Guarding{}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	if got := record.Intent(p, seen.Inventory).Record.Packages; !slices.Equal(got, []string{"aws", "gcp", "old"}) {
		t.Errorf("before the first write nothing is forgotten: %v", got)
	}
	after := record.Settled(p, seen.Inventory, nil).Record
	if !slices.Equal(after.Packages, []string{"aws", "gcp"}) || !inventory.ReadFingerprints(after.Definitions["old"]).Has("a.example.org") {
		t.Errorf("after it what is gone is, and what it declared is known: %+v", after)
	}
	if !p.Remembers() {
		t.Error("the record is stored, also if nothing else is")
	}
}

func TestFingerprints(t *testing.T) {
	names := make([]string, 20000)
	for i := range names {
		names[i] = fmt.Sprintf("t%d.example.org", i)
	}
	few := inventory.FingerprintsOf(names[:2043])
	if again := inventory.ReadFingerprints(few.String()); !slices.Equal(again, few) || !again.Has(names[7]) || again.Has("other.example.org") {
		t.Errorf("what was written reads back the same")
	}
	if len(few.String()) > 11<<10 {
		t.Errorf("2,043 definitions take %d bytes", len(few.String()))
	}
	if inventory.ReadFingerprints("?") != nil || len(inventory.ReadFingerprints("AAA")) != 0 {
		t.Error("what cannot be read stands for nothing")
	}
	r := inventory.Record{}
	r.NoteDefinitions("gone", inventory.FingerprintsOf(names[:10000]))
	r.AddPackage("here", inventory.FingerprintsOf(names[10000:]))
	bounded := r.Bounded()
	if bounded.Definitions["gone"] != "" || bounded.Definitions["here"] == "" || !slices.Equal(bounded.Packages, []string{"here"}) {
		t.Errorf("an annotation is bounded, and what is gone is forgotten first: %d", len(bounded.Definitions))
	}
}
