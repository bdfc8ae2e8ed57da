package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

// A fakeRecord is a Record for one commit.
type fakeRecord struct {
	stands map[string]Status
	away   error
	posted []string
}

func (w *fakeRecord) Post(_ context.Context, s Status) error {
	w.posted = append(w.posted, s.Commit[:4]+" "+s.Context+" "+string(s.State))
	return nil
}

func (w *fakeRecord) Current(_ context.Context, _, of string) (Status, error) {
	return w.stands[of], w.away
}

func TestPreviews(t *testing.T) {
	const about = "headgate/prod/preview"
	for name, tc := range map[string]struct {
		reason  string
		of      inventory.Sync
		cluster string
		stands  map[string]Status
		away    error
		want    []string
	}{
		"First":      {"A pending status shows the author of the push that the preview has begun.", inventory.Sync{Namespace: "home", Name: "prod"}, "", nil, nil, []string{"0123 " + about + " pending", "0123 " + about + " error"}},
		"StandsDone": {"After a restart, a final status is not replaced by a pending one.", inventory.Sync{Namespace: "home", Name: "prod"}, "", map[string]Status{about: {State: report.Success}}, nil, []string{"0123 " + about + " error"}},
		"OfAnother":  {"Statuses of other tools do not count.", inventory.Sync{Namespace: "home", Name: "prod"}, "", map[string]Status{"ci": {State: report.Success}}, nil, []string{"0123 " + about + " pending", "0123 " + about + " error"}},
		"Live":       {"With several clusters, the name of the status contains the cluster.", inventory.Sync{Namespace: "home", Name: "prod"}, "east", nil, nil, []string{"0123 headgate/east/prod/preview pending", "0123 headgate/east/prod/preview error"}},
		"Namespace":  {"Two syncs of the same name differ by their namespaces.", inventory.Sync{Namespace: "team", Name: "prod"}, "", nil, nil, []string{"0123 headgate/team/prod/preview pending", "0123 headgate/team/prod/preview error"}},
		"Away":       {"If the present status cannot be read, no pending status overwrites it.", inventory.Sync{Namespace: "home", Name: "prod"}, "", nil, errBoom, []string{"0123 " + about + " error"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fakeRecord{stands: tc.stands, away: tc.away}
			p := Previews{Poster: w, Pull: Pull{Number: 7, Head: commit}, Name: NameOfSync(tc.of, tc.cluster, "home")}
			if err := p.Pending(t.Context()); !errors.Is(err, tc.away) {
				t.Errorf("Pending(...): %v", err)
			}
			if err := p.Publish(t.Context(), report.Combine([]report.Report{report.Failed(tc.of, "", errBoom)})); err != nil {
				t.Errorf("Publish(...): %v", err)
			}
			if diff := cmp.Diff(tc.want, w.posted); diff != "" {
				t.Errorf("%s\nposted (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A status is for a commit and its targets. One for other targets does not stand for this one.
func TestPreviewsOfTargets(t *testing.T) {
	const about = "headgate/prod/preview"
	pending := []string{"0123 " + about + " pending"}
	for name, tc := range map[string]struct {
		reason  string
		stands  string
		targets []string
		want    []string
	}{
		"Same":     {"A restart does not delay a merge.", "Safe; into main", nil, nil},
		"Other":    {"The pull request was retargeted.", "Safe; into staging", nil, pending},
		"Longer":   {"The name of the other branch ends in the name of this one.", "Safe; into not-main", nil, pending},
		"Unknown":  {"An earlier version of Headgate posted it.", "Safe", nil, pending},
		"More":     {"Another pull request with this head was opened.", "Safe; into main", []string{"staging", "main"}, pending},
		"Both":     {"The order of the targets does not matter.", "Safe; into main, staging", []string{"staging", "main"}, nil},
		"Hidden":   {"A branch whose name looks the same is another one.", "Safe; into main", []string{"ma\u200bin"}, pending},
		"Stopped":  {"A preview that was stopped would be stopped for each target.", report.PreviewStopped + "over the memory limit; into staging", nil, nil},
		"TooLong":  {"Long names are cut, and remain distinct.", "Safe" + into([]string{strings.Repeat("x", 100) + "1"}), []string{strings.Repeat("x", 100) + "2"}, pending},
		"JustLong": {"A long name is found again.", "Safe" + into([]string{strings.Repeat("x", 100)}), []string{strings.Repeat("x", 100)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, post := range []func(*Previews) error{
				func(p *Previews) error { return p.Pending(t.Context()) },
				func(p *Previews) error { return p.Waiting(t.Context(), "waiting for a registry: 503") },
			} {
				state := report.Success
				if name == "Stopped" {
					state = report.Error
				}
				w := &fakeRecord{stands: map[string]Status{about: {State: state, Description: tc.stands}}}
				p := &Previews{Poster: w, Pull: Pull{Number: 7, Head: commit, Target: "main"}, Targets: tc.targets, Name: NameOfSync(inventory.Sync{Namespace: "home", Name: "prod"}, "", "home")}
				if err := post(p); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tc.want, w.posted); diff != "" {
					t.Errorf("%s\nposted (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// The targets remain in a description that a forge limits, and are the same when they are read again.
func TestTargetsAreKept(t *testing.T) {
	for _, kind := range kinds {
		f := &fake{kind: kind}
		base := f.start(t).URL
		p := Previews{Poster: statusesOn(t, kind, base).Poster.(Record), Pull: Pull{Head: commit, Target: strings.Repeat("main", 30)}, Name: "headgate/prod"}
		if err := p.Decide(t.Context(), report.Status{State: report.Success, Description: strings.Repeat("Look: ", 100)}); err != nil {
			t.Fatal(err)
		}
		f.took()
		p.Poster = statusesOn(t, kind, base).Poster.(Record)
		stands, err := p.Poster.Current(t.Context(), commit, p.context())
		if err != nil || !p.holds(stands) {
			t.Errorf("%s: %+v, %v", kind, stands, err)
		}
		if err := p.Pending(t.Context()); err != nil {
			t.Error(err)
		}
		if _, posts := f.took(); posts != 0 {
			t.Errorf("%s: a pending status replaced the verdict", kind)
		}
	}
}

// Nothing is published for a pull request that has another head or target than its preview.
func TestSupersededPreview(t *testing.T) {
	of := Pull{Number: 7, Head: commit, Target: "main"}
	for name, tc := range map[string]struct {
		now  Pull
		want error
	}{
		"Same":    {Pull{Number: 7, Head: commit, Target: "main", Fork: true}, nil},
		"Head":    {Pull{Number: 7, Head: strings.Repeat("e", 40), Target: "main"}, ErrSuperseded},
		"Target":  {Pull{Number: 7, Head: commit, Target: "staging"}, ErrSuperseded},
		"Unknown": {Pull{}, errBoom},
	} {
		w := &fakeRecord{}
		p := Previews{Poster: w, Pull: of, Name: "headgate/prod", Now: func(context.Context) (Pull, error) {
			if tc.now == (Pull{}) {
				return tc.now, errBoom
			}
			return tc.now, nil
		}}
		err := p.Publish(t.Context(), report.Combine([]report.Report{report.Failed(inventory.Sync{Name: "prod"}, "", errBoom)}))
		if !errors.Is(err, tc.want) || (len(w.posted) > 0) != (tc.want == nil) {
			t.Errorf("%s: %v, posted %q", name, err, w.posted)
		}
	}
}

// A waiting preview keeps the earlier result.
func TestPreviewsWaiting(t *testing.T) {
	const about = "headgate/prod/preview"
	for name, tc := range map[string]struct {
		stands report.State
		want   []string
	}{
		"Nothing": {"", []string{"0123 " + about + " pending"}},
		"Pending": {report.Pending, []string{"0123 " + about + " pending"}},
		"Result":  {report.Failure, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fakeRecord{stands: map[string]Status{about: {State: tc.stands}}}
			p := Previews{Poster: w, Pull: Pull{Number: 7, Head: commit}, Name: NameOfSync(inventory.Sync{Namespace: "home", Name: "prod"}, "", "home")}
			if err := p.Waiting(t.Context(), "waiting for a registry: 503"); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, w.posted); diff != "" {
				t.Errorf("posted (-want +got):\n%s", diff)
			}
		})
	}
}

// The statuses of a commit are listed once and then cached.
func TestStands(t *testing.T) {
	for _, kind := range kinds {
		f := &fake{kind: kind}
		base := f.start(t).URL
		standing := Status{Commit: commit, Context: "headgate/prod/preview", State: report.Success, Description: "d", TargetURL: "https://example.org"}
		if err := statusesOn(t, kind, base).Poster.Post(t.Context(), standing); err != nil {
			t.Fatal(err)
		}
		f.took()
		record := statusesOn(t, kind, base).Poster.(Record)
		for of, want := range map[string]report.State{standing.Context: report.Success, "other": ""} {
			if got, err := record.Current(t.Context(), commit, of); err != nil || got.State != want {
				t.Errorf("%s: %s stands at %v, %v, want %q", kind, of, got, err, want)
			}
		}
		if all, _ := f.took(); all != 1 {
			t.Errorf("%s: %d requests", kind, all)
		}
		f.instead = func(w http.ResponseWriter, r *http.Request) bool {
			answerJSON(w, http.StatusForbidden, `{"message":"not with `+canary+`"}`)
			return true
		}
		if _, err := statusesOn(t, kind, base).Poster.(Record).Current(t.Context(), commit, "other"); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: where it may not be read: %v", kind, err)
		}
	}
}
