package target

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/traffic"
	"headgate.dev/headgate/reconcile"
)

// Three syncs follow one branch. A commit that changes the directory of one of them costs the others no pass, no request and no status,
// except the one status of their cluster.
func TestUntouchedCommit(t *testing.T) {
	repository, board, wests := newRepo(t), newStatusServer(t), newStatusServer(t)
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: untouched-%s, namespace: default}\ndata: {key: %q}\n"
	heard, peers := newEvents(), &reconcile.Peers{}
	var requests traffic.Requests
	commit := repository.pushAll(t, map[string]string{"a/a.yaml": fmt.Sprintf(object, "a", "1"), "b/b.yaml": fmt.Sprintf(object, "b", "1"), "c/c.yaml": fmt.Sprintf(object, "c", "1")})
	for name, more := range map[string]string{
		"a": "",
		"b": fmt.Sprintf("  clusterName: east\n  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}}\n", board.URL),
		"c": fmt.Sprintf("  clusterName: west\n  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}, contexts: Cluster}\n", wests.URL),
	} {
		s := decode(t, fmt.Sprintf("  source: {repo: %q, interval: 1s, path: %s}\n  interval: 1h\n  crdOwner: Headgate\n%s", repository.dir, name, more))
		s.Name += "-" + name
		config := fixtures.Config(t)
		if name == "b" {
			config.Wrap(requests.Wrap)
		}
		one, err := New(s, Surroundings{
			Cluster: config, Cache: t.TempDir(), Peers: peers,
			Getenv: func(name string) string { return map[string]string{"TOKEN": "sesame"}[name] },
			Event:  func(e reconcile.Event) { heard.hear(fmt.Sprintf("%s %.7s", name, e.Revision), e) },
		})
		if err != nil {
			t.Fatal(err)
		}
		running(t, one)
	}
	makes := func(name string, kind reconcile.EventKind, commit string) {
		t.Helper()
		what := fmt.Sprintf("%s %.7s %s false", name, commit, kind)
		heard.until(t, what, heard.had(what))
	}
	const seen, done = "pending: seen; the pass has not ended", "success: 1 object"
	makes("b", reconcile.Passed, commit)
	board.has(t, statuses(commit, seen, seen, done, "success: no drift")...)
	makes("c", reconcile.Passed, commit)
	wests.has(t, of(commit, "west", seen, seen, done, "success: no drift")...)

	watches := func() bool {
		return slices.ContainsFunc(requests.Log(), func(sent string) bool { return strings.HasPrefix(sent, "WATCH /api/v1/configmaps?") })
	}
	for begun := time.Now(); !watches(); time.Sleep(20 * time.Millisecond) { // it begins after the first pass
		if time.Since(begun) > fixtures.Patience {
			t.Fatalf("nothing watches the ConfigMaps: %v", requests.Log())
		}
	}
	requests.Reset()
	commit = repository.push(t, "a/a.yaml", fmt.Sprintf(object, "a", "2"))
	makes("a", reconcile.Passed, commit)
	makes("b", reconcile.Untouched, commit)
	makes("c", reconcile.Untouched, commit)
	wests.has(t, of(commit, "west", done, "success: no drift")...)
	if n := board.count(); n > 0 {
		t.Errorf("%d statuses of a sync that the commit does not change", n)
	}
	if got := requests.Counts(); requests.Total() > got["WATCH"] {
		t.Errorf("a commit that changes nothing of a sync costs requests: %v", requests.Log())
	}
}

// statuses returns the posts of a sync over a commit, for activation and drift in turn.
func statuses(commit string, states ...string) []string {
	return of(commit, "east/team/untouchedcommit-b", states...)
}

func of(commit, about string, states ...string) []string {
	states = slices.Clone(states)
	for i, state := range states {
		context := []string{"activation", "drift"}[i%2]
		states[i] = fmt.Sprintf("%.7s headgate/%s/%s %s", commit, about, context, state)
	}
	return states
}
