package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// selectors returns the labels that the objects of an installation select Pods with, by object.
func selectors(t *testing.T, all []*unstructured.Unstructured) map[string]labels.Selector {
	t.Helper()
	found := map[string]labels.Selector{}
	for _, u := range all {
		for _, at := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}, {"spec", "selector"}} {
			if set, has, err := unstructured.NestedStringMap(u.Object, at...); has && err == nil {
				found[Brief(u)] = labels.SelectorFromSet(set)
				break
			}
		}
		if u.GetKind() == "Deployment" {
			spread, _, _ := unstructured.NestedSlice(podOf(u), "topologySpreadConstraints")
			set, _, _ := unstructured.NestedStringMap(spread[0].(map[string]any), "labelSelector", "matchLabels")
			found["spread of "+Brief(u)] = labels.SelectorFromSet(set)
		}
	}
	return found
}

// Each shard has a workload of its own, and nothing selects Pods of another one.
func TestShardsDoNotOverlap(t *testing.T) {
	o := initial(Tenant)
	o.Shards = []string{"a", "a-b"} // the one name begins with the other
	all := objects(t, o)
	byID(t, all) // no object is there twice
	by := selectors(t, all)
	for name, arg := range map[string]string{
		"headgate-controller": "!" + ShardKey, "headgate-controller-a": ShardKey + "=a", "headgate-controller-a-b": ShardKey + "=a-b",
	} {
		var own []string
		for _, u := range all {
			if u.GetKind() == "Deployment" && u.GetName() == name {
				set, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
				for object, selector := range by {
					if selector.Matches(labels.Set(set)) {
						own = append(own, object)
					}
				}
				args := argsOf(u)
				if !slices.Contains(args, selectorFlag+arg) || !slices.Contains(args, "--webhook-endpoints="+name+webhooks) {
					t.Errorf("%s has the arguments %q", name, args)
				}
				if account := podOf(u)["serviceAccountName"]; account != Deployment {
					t.Errorf("%s runs as %v", name, account)
				}
			}
		}
		slices.Sort(own)
		at := DefaultNamespace + "/" + name
		want := []string{"Deployment " + at, "NetworkPolicy " + at, "PodDisruptionBudget " + at, "Service " + at, "spread of Deployment " + at}
		if diff := cmp.Diff(want, own); diff != "" {
			t.Errorf("the Pods of %s are selected by (-want +got):\n%s", name, diff)
		}
	}
}

// The objects besides those of shards are the same, but for the Role and the arguments of the first Deployment.
func TestShardsChangeNothingElse(t *testing.T) {
	for _, profile := range []Profile{Tenant, Observe, Crossplane, CRDs} {
		o := initial(profile)
		o.Shards = []string{"a"}
		before, after := byID(t, objects(t, initial(profile))), byID(t, objects(t, o))
		var changed, added []string
		for id, object := range after {
			switch {
			case before[id] == nil:
				added = append(added, id)
			case !cmp.Equal(before[id], object):
				changed = append(changed, id)
			}
		}
		slices.Sort(changed)
		slices.Sort(added)
		at := " " + DefaultNamespace + "/" + Deployment
		if diff := cmp.Diff([]string{"Deployment" + at, "Role" + at}, changed); diff != "" {
			t.Errorf("%s (-want +changed):\n%s", profile, diff)
		}
		want := []string{"Deployment" + at + "-a", "EndpointSlice" + at + "-a-webhooks", "NetworkPolicy" + at + "-a", "PodDisruptionBudget" + at + "-a", "Service" + at + "-a", "Service" + at + "-a-webhooks"}
		if diff := cmp.Diff(want, added); diff != "" {
			t.Errorf("%s (-want +added):\n%s", profile, diff)
		}
		first, shard := before["Deployment"+at], after["Deployment"+at+"-a"]
		text, err := yaml.Marshal(shard)
		if err != nil {
			t.Fatal(err)
		}
		back := strings.NewReplacer(Deployment+"-a", Deployment, "        - "+selectorFlag+ShardKey+"=a\n", "").Replace(string(text))
		text, err = yaml.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), back); diff != "" {
			t.Errorf("%s: a shard and a controller without shards (-controller +shard):\n%s", profile, diff)
		}
	}
}

func deployment(name, namespace string, args ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"args": []any{"--proxy"}}, map[string]any{"args": args}},
	}}}}}
	u.SetKind("Deployment")
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

func TestUnwatched(t *testing.T) {
	sync := func(namespace, key string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetNamespace(namespace)
		if key != "" {
			u.SetLabels(map[string]string{ShardKey: key})
		}
		return u
	}
	all := deployment("headgate-controller", "h", "controller")
	rest := deployment("headgate-controller", "h", "controller", "--watch-label-selector=!"+ShardKey)
	shard := deployment("mine", "h", "controller", "--watch-label-selector="+ShardKey+"=a")
	team := deployment("headgate-controller", "t", "controller", "--watch-namespace=team-a", "--watch-label-selector=!"+ShardKey)
	goes := shard.DeepCopy()
	goes.SetDeletionTimestamp(new(metav1.Now()))
	cases := map[string]struct {
		reason      string
		deployments []*unstructured.Unstructured
		syncs       []*unstructured.Unstructured
		want        []string // the beginnings of lines
	}{
		"NoController": {"Without a controller, shards are not what is missing.", nil, []*unstructured.Unstructured{sync("n", "a")}, nil},
		"OtherProgram": {"Other Deployments watch nothing.", []*unstructured.Unstructured{deployment("run", "h", "run", "-f", "x")}, []*unstructured.Unstructured{sync("n", "a")}, nil},
		"All":          {"A controller without a selector runs every Sync.", []*unstructured.Unstructured{all}, []*unstructured.Unstructured{sync("n", "a"), sync("n", "")}, nil},
		"Watched":      {"A Deployment that a user made counts, whatever its name.", []*unstructured.Unstructured{rest, shard}, []*unstructured.Unstructured{sync("n", "a"), sync("n", "")}, nil},
		"NotWatched":   {"Nothing runs these.", []*unstructured.Unstructured{rest, shard}, []*unstructured.Unstructured{sync("n", "a"), sync("n", "b"), sync("m", "b"), sync("m", "C")}, []string{"1 Sync has the key C", "2 Syncs have the key b, which no Deployment watches"}},
		"Deleted":      {"A Deployment that is being deleted runs nothing.", []*unstructured.Unstructured{rest, goes}, []*unstructured.Unstructured{sync("n", "a")}, []string{"1 Sync has the key a"}},
		"NoRest":       {"The Syncs without a key may be those that are forgotten.", []*unstructured.Unstructured{shard}, []*unstructured.Unstructured{sync("n", "")}, []string{"1 Sync has no label"}},
		"Elsewhere":    {"Nobody asked this controller to watch that namespace.", []*unstructured.Unstructured{team}, []*unstructured.Unstructured{sync("team-a", "x"), sync("team-b", "x")}, []string{"1 Sync has the key x"}},
		"Many": {
			"A tenant with many keys writes no long output.", []*unstructured.Unstructured{rest},
			[]*unstructured.Unstructured{sync("n", "1"), sync("n", "2"), sync("n", "3"), sync("n", "4"), sync("n", "5"), sync("n", "6"), sync("n", "7")},
			[]string{"1 Sync has the key 1", "1 Sync has the key 2", "1 Sync has the key 3", "1 Sync has the key 4", "1 Sync has the key 5", "2 more keys"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Unwatched(tc.deployments, tc.syncs)
			ok := slices.EqualFunc(tc.want, got, func(want, line string) bool { return strings.HasPrefix(line, want) })
			if !ok {
				t.Errorf("%s\nUnwatched() = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
