package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	claims "headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
)

// A fakeReviewed answers like the documented APIs of GitHub and GitLab for pull request 7 of acme/platform: alice wrote it, bob may
// write, carol may read, and a bot may write, too.
type fakeReviewed struct {
	kind     Kind
	comments []comment
	emails   []string // of further commits, whose authors have no user on the forge
	reviews  []review
	asked    []string
	pushed   time.Time // when the commit became the head
	opener   string    // who opened the pull request; "" is alice
	message  string    // of its commit
	silent   bool      // no preview was posted yet
	forged   bool      // another account posted a status with that name before
	demoted  bool      // bob no longer has write permission
	target   string    // "" is main
}

var firstPosted = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (h *fakeReviewed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3"), "/api/v4")
	h.asked = append(h.asked, r.Method+" "+path)
	if h.pushed.IsZero() {
		h.pushed = firstPosted.Add(-time.Hour)
	}
	answer := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		answerJSON(w, http.StatusOK, string(raw))
	}
	at := func(t time.Time) string { return t.Format(time.RFC3339) }
	opener, target, message := cmp.Or(h.opener, "alice"), cmp.Or(h.target, "main"), cmp.Or(h.message, "change")
	pull := func(state string) object {
		if h.kind == KindGitLab {
			return object{"iid": 7, "sha": commit, "state": state, "target_branch": target, "source_project_id": 1, "target_project_id": 1, "author": object{"id": ids[opener], "username": opener}}
		}
		of := object{"number": 7, "head": object{"sha": commit, "repo": object{"id": 1}}, "base": object{"ref": target, "repo": object{"id": 1}}, "user": object{"login": opener}}
		if state == "merged" {
			of["merged_at"] = at(firstPosted)
		}
		return of
	}
	hubPath, labPath := strings.TrimPrefix(path, "/repos/acme/platform"), strings.TrimPrefix(path, "/projects/acme%2Fplatform")
	user, isMember := strings.CutPrefix(labPath, "/members/all/")
	login, isPermission := strings.CutPrefix(hubPath, "/collaborators/")
	switch {
	case path == "/user":
		answer(object{"login": "headgate", "username": "headgate"})
	case hubPath == "/pulls/7" || labPath == "/merge_requests/7":
		answer(pull("opened"))
	case hubPath == "/commits/"+commit+"/statuses" || labPath == "/repository/commits/"+commit+"/statuses":
		var all []object
		for i, state := range []string{"success", "failure", "pending"} { // newest first; the oldest was posted at 12:00
			s := object{"id": 9 - i, "state": state, "status": strings.Replace(state, "failure", "failed", 1), "context": "headgate/platform/preview", "name": "headgate/platform/preview", "created_at": at(firstPosted.Add(time.Duration(1-i) * time.Hour)), "creator": object{"login": "headgate"}, "author": object{"username": "headgate"}}
			all = append(all, s)
		}
		if h.silent {
			all = nil
		}
		if h.forged {
			all = append(all, object{"id": 2, "state": "success", "status": "success", "context": "headgate/x/preview", "name": "headgate/x/preview", "created_at": at(firstPosted.Add(-30 * time.Minute)), "creator": object{"login": "mallory"}, "author": object{"username": "mallory"}})
		}
		answer(append(all, object{"id": 1, "state": "success", "status": "success", "context": "ci/preview", "name": "ci/preview", "created_at": at(firstPosted.Add(-24 * time.Hour))}))
	case hubPath == "/issues/7/comments" || labPath == "/merge_requests/7/notes":
		h.page(w, r, answer)
	case hubPath == "/pulls/7/commits":
		all := []object{{"sha": commit, "author": object{"login": "alice"}, "committer": object{"login": "web-flow"}, "commit": object{"message": message, "author": object{"email": "alice@example.org"}, "committer": object{"email": "noreply@github.com"}}}}
		for _, email := range h.emails {
			all = append(all, object{"sha": commit, "author": nil, "committer": nil, "commit": object{"message": "change", "author": object{"email": email}, "committer": object{"email": email}}})
		}
		answer(all)
	case path == "/api/graphql":
		nodes := []object{{"sha": commit, "message": message, "authorEmail": "alice@example.org", "committerEmail": "Alice@example.org", "author": object{"username": "alice"}}}
		for _, email := range h.emails {
			nodes = append(nodes, object{"sha": commit, "message": "change", "authorEmail": email, "committerEmail": email, "author": nil})
		}
		answer(object{"data": object{"project": object{"mergeRequest": object{"commits": object{"pageInfo": object{"hasNextPage": false, "endCursor": ""}, "nodes": nodes}}}}})
	case isPermission:
		permission := map[string]string{"alice/permission": "admin", "bob/permission": "write", "ci-bot[bot]/permission": "write", "ci-bot%5Bbot%5D/permission": "write", "headgate/permission": "write", "carol/permission": "read"}[login]
		if h.demoted && login == "bob/permission" {
			permission = "read"
		}
		if permission == "" {
			answerJSON(w, http.StatusNotFound, `{"message": "Not Found"}`)
			return
		}
		answer(object{"permission": permission})
	case isMember:
		id, _ := strconv.Atoi(user)
		level := map[int]int{1: 50, 2: 30, 3: 20, 4: 30, 5: 40}[id]
		if h.demoted && id == 2 {
			level = 20
		}
		if level == 0 {
			answerJSON(w, http.StatusNotFound, `{"message": "404 Not found"}`)
			return
		}
		answer(object{"id": id, "state": "active", "access_level": level})
	case labPath == "/merge_requests/7/versions":
		answer([]object{{"id": 2, "head_commit_sha": commit, "created_at": at(h.pushed)}, {"id": 1, "head_commit_sha": strings.Repeat("e", 40), "created_at": at(firstPosted.Add(-48 * time.Hour))}})
	case hubPath == "/pulls/7/reviews":
		if len(h.reviews) > 5 { // more than Headgate reads
			w.Header().Set("Link", fmt.Sprintf("<http://%s%s?page=99>; rel=\"next\"", r.Host, r.URL.Path))
		}
		var all []object
		for _, v := range h.reviews {
			state := "CHANGES_REQUESTED"
			switch {
			case v.neutral:
				state = "COMMENTED"
			case v.approves:
				state = "APPROVED"
			}
			all = append(all, object{"id": v.by.id, "user": object{"login": v.by.author}, "state": state, "commit_id": v.commit, "submitted_at": at(v.by.created)})
		}
		answer(all)
	case labPath == "/merge_requests/7/approvals":
		var all []object
		for _, v := range h.reviews {
			if v.approves {
				all = append(all, object{"user": object{"id": ids[v.by.author], "username": v.by.author}, "approved_at": at(v.by.created)})
			}
		}
		answer(object{"approved_by": all})
	case hubPath == "/commits" || labPath == "/repository/commits":
		answer([]object{{"sha": commit, "id": commit}})
	case hubPath == "/commits/"+commit+"/pulls" || labPath == "/repository/commits/"+commit+"/merge_requests":
		answer([]object{pull("opened"), pull("merged")})
	default:
		answerJSON(w, http.StatusNotFound, `{"message": "Not Found"}`)
	}
}

// Everybody can open a pull request with the head of another one. It counts only if its author made the head or may write.
func TestCounts(t *testing.T) {
	for _, kind := range []Kind{KindGitHub, KindGitLab} {
		for opener, want := range map[string]bool{"alice": true, "bob": true, "carol": false, "mallory": false} {
			h := &fakeReviewed{kind: kind, opener: opener}
			server := httptest.NewServer(h)
			pulls, err := Account{Repository: Repository{Kind: kind, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(canary)}.Pulls()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := pulls.Counts(t.Context(), Pull{Number: 7, Head: commit}); err != nil || got != want {
				t.Errorf("%s: the pull request of %s counts: %t, %v", kind, opener, got, err)
			}
			h.demoted = true
			if got, err := pulls.Counts(t.Context(), Pull{Number: 7, Head: strings.Repeat("e", 40)}); err != nil || opener != "alice" && got {
				t.Errorf("%s: without rights, the pull request of %s with a commit of another user counts: %t, %v", kind, opener, got, err)
			}
			server.Close()
			if _, err := pulls.Counts(t.Context(), Pull{Number: 7, Head: commit}); err == nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: while the forge is away: %v", kind, err)
			}
			if got, err := pulls.Counts(t.Context(), Pull{Number: 7, Head: commit, Queued: true}); err != nil || !got {
				t.Errorf("%s: the head of a merge queue counts: %t, %v", kind, got, err)
			}
		}
	}
}

var ids = map[string]int{"alice": 1, "bob": 2, "carol": 3, "project_1_bot": 4, "headgate": 5}

// page answers with one page of 100 comments.
func (h *fakeReviewed) page(w http.ResponseWriter, r *http.Request, answer func(any)) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	page = max(page, 1)
	all := h.comments
	if since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since")); err == nil {
		all = slices.DeleteFunc(slices.Clone(all), func(c comment) bool { return c.updated.Before(since) })
	}
	if r.URL.Query().Get("sort") == "desc" {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	some := []object{}
	for _, c := range all[min(len(all), (page-1)*100):min(len(all), page*100)] {
		kind := "User"
		if strings.HasSuffix(c.author, "[bot]") {
			kind = "Bot"
		}
		some = append(some, object{
			"id": c.id, "body": c.body, "created_at": c.created.Format(time.RFC3339), "updated_at": c.updated.Format(time.RFC3339),
			"user": object{"login": c.author, "type": kind}, "author": object{"username": c.author, "id": ids[c.author]},
		})
	}
	if page*100 < len(all) {
		w.Header().Set("Link", fmt.Sprintf("<http://%s%s?page=%d>; rel=\"next\"", r.Host, r.URL.Path, page+1))
		w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	}
	answer(some)
}

// talkOn reads the comments and reviews on the fake.
func talkOn(t *testing.T, h *fakeReviewed) *conversation {
	t.Helper()
	got, err := talkedOn(t, h, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func talkedOn(t *testing.T, h *fakeReviewed, rules Rules) (*conversation, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	of := Account{Repository: Repository{Kind: h.kind, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(canary)}
	pulls, err := of.Pulls()
	if err != nil {
		t.Fatal(err)
	}
	got, err := pulls.conversation(t.Context(), Pull{Number: 7, Head: commit}, rules)
	if err != nil {
		return nil, err
	}
	return got, got.readSelf(t.Context())
}

// TestCommandsOnGitea checks the rules on a real Gitea. This test checks the API formats of GitHub and GitLab.
func TestApprovalsOnHubs(t *testing.T) {
	digest := strings.Repeat("a1", 16)
	command := "/headgate approve " + digest + " " + commit[:7]
	at := func(minutes int, author string) comment {
		when := firstPosted.Add(time.Duration(minutes) * time.Minute)
		return comment{id: int64(minutes + 100), author: author, body: command, created: when, updated: when}
	}
	edited := at(5, "bob")
	edited.updated = edited.updated.Add(time.Second)
	approves := func(minutes int, author, on string) review {
		return review{by: at(minutes, author), commit: on, approves: true}
	}
	elsewhere := strings.Repeat("f", 40)
	spam := func(n int) (all []comment) {
		for i := range n {
			c := at(1, "carol")
			c.id = int64(1000 + i)
			all = append(all, c)
		}
		return append(all, at(7, "bob"))
	}
	for name, tc := range map[string]struct {
		reason   string
		comments []comment
		emails   []string
		reviews  []review
		rules    Rules
		kind     Kind // "" is both
		want     []string
		pushed   int    // minutes after the first status of the head
		wrong    string // error
	}{
		"Writer":        {"A user with write access who is not an author may approve.", []comment{at(5, "bob")}, nil, nil, Rules{}, "", []string{"bob"}, 0, ""},
		"Author":        {"An author may not approve, even as an administrator.", []comment{at(5, "alice")}, nil, nil, Rules{}, "", nil, 0, ""},
		"AuthorAllowed": {"With ByAuthor, an author may approve.", []comment{at(5, "alice")}, nil, nil, Rules{ByAuthor: true}, "", []string{"alice"}, 0, ""},
		"Reader":        {"A user without write access may not approve.", []comment{at(5, "carol")}, nil, nil, Rules{}, "", nil, 0, ""},
		"Stranger":      {"A user whom the forge does not know may not approve.", []comment{at(5, "mallory")}, nil, nil, Rules{ByAuthor: true}, "", nil, 0, ""},
		"Bot":           {"A bot may not approve.", []comment{at(5, "ci-bot[bot]"), at(6, "project_1_bot")}, nil, nil, Rules{ByAuthor: true}, "", nil, 0, ""},
		"Headgate":      {"Headgate may not approve its own requests.", []comment{at(5, "headgate")}, nil, nil, Rules{}, "", nil, 0, ""},
		"Early":         {"A comment from before the digest was posted for this head does not count.", []comment{at(-1, "bob")}, nil, nil, Rules{}, "", nil, 0, ""},
		"Edited":        {"An edited comment does not count, because other users can edit comments.", []comment{edited}, nil, nil, Rules{}, "", nil, 0, ""},
		"NoApprover":    {"A user who is not in the list of approvers may not approve.", []comment{at(5, "bob")}, nil, nil, Rules{Approvers: []string{"dora"}}, "", nil, 0, ""},
		"SecondAddress": {"The forge does not know the author's email address, which may belong to the approver.", []comment{at(5, "bob")}, []string{"bob.private@example.org"}, nil, Rules{}, "", nil, 0, ""},
		"Spam":          {"Thousands of other comments do not prevent an approval from being found.", spam(1500), nil, nil, Rules{}, "", []string{"bob"}, 0, ""},
		"TooMuchSpam":   {"Beyond the limit of comments, no approval counts, and memory use is bounded.", spam(10_000), nil, nil, Rules{}, KindGitHub, nil, 0, "more comments"},
		"TooMuchLater":  {"GitLab returns the newest comments first, so the approval is found.", spam(10_000), nil, nil, Rules{}, KindGitLab, []string{"bob"}, 0, ""},
		"Review":        {"An approving review of the head counts.", nil, nil, []review{approves(5, "bob", commit)}, Rules{Reviews: true}, "", []string{"bob"}, 0, ""},
		"ReviewUnasked": {"A review does not count if the rules do not accept reviews.", nil, nil, []review{approves(5, "bob", commit)}, Rules{}, "", nil, 0, ""},
		"ReviewEarly":   {"A review from before the digest was posted does not count.", nil, nil, []review{approves(-1, "bob", commit)}, Rules{Reviews: true}, "", nil, 0, ""},
		"ReviewReader":  {"A review by a user without write access does not count.", nil, nil, []review{approves(5, "carol", commit)}, Rules{Reviews: true}, "", nil, 0, ""},
		"ReviewOther":   {"A review of another commit does not count.", nil, nil, []review{approves(5, "bob", elsewhere)}, Rules{Reviews: true}, KindGitHub, nil, 0, ""},
		"ReviewChanged": {"A later review by the same user withdraws the approval.", nil, nil, []review{approves(5, "bob", commit), {by: at(6, "bob"), commit: commit}}, Rules{Reviews: true}, KindGitHub, nil, 0, ""},
		"ReviewSpoke":   {"A later review that only comments does not withdraw the approval.", nil, nil, []review{approves(5, "bob", commit), {by: at(6, "bob"), commit: commit, neutral: true}}, Rules{Reviews: true}, KindGitHub, []string{"bob"}, 0, ""},
		"Pushed":        {"A comment on the previous head does not count, even if the new head was previewed earlier in another pull request.", []comment{at(5, "bob")}, nil, nil, Rules{}, KindGitLab, nil, 6, ""},
		"PushedBefore":  {"A comment after the push counts for the new head.", []comment{at(7, "bob")}, nil, nil, Rules{}, KindGitLab, []string{"bob"}, 6, ""},
		"ReviewPushed":  {"A review of the previous head does not count, although GitLab keeps approvals after a push.", nil, nil, []review{approves(5, "bob", commit)}, Rules{Reviews: true}, KindGitLab, nil, 6, ""},
		"ReviewAfter":   {"A review after the push counts for the new head.", nil, nil, []review{approves(7, "bob", commit)}, Rules{Reviews: true}, KindGitLab, []string{"bob"}, 6, ""},
		"ReviewSpam":    {"No review counts if some could not be read, because one of those may withdraw it.", nil, nil, append([]review{approves(5, "bob", commit)}, slices.Repeat([]review{{by: at(6, "alice"), commit: commit, neutral: true}}, 10)...), Rules{Reviews: true}, KindGitHub, nil, 0, "more reviews"},
	} {
		for _, kind := range []Kind{KindGitHub, KindGitLab} {
			if tc.kind != "" && tc.kind != kind {
				continue
			}
			t.Run(name+"On"+string(kind), func(t *testing.T) {
				h := &fakeReviewed{kind: kind, comments: tc.comments, emails: tc.emails, reviews: tc.reviews}
				if tc.pushed != 0 {
					h.pushed = firstPosted.Add(time.Duration(tc.pushed) * time.Minute)
				}
				of, err := talkedOn(t, h, tc.rules)
				var all []counted
				if err == nil {
					all, err = of.approvals(t.Context())
				}
				if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				var got []string
				for _, a := range all {
					if a.digest != digest && a.digest != "" {
						t.Errorf("digest %q", a.digest)
					}
					got = append(got, a.author)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("%s\napproved by %q, want %q", tc.reason, got, tc.want)
				}
				if len(h.asked) > 40 {
					t.Errorf("%d requests", len(h.asked))
				}
			})
		}
	}
}

// These are further cases in which an approval must not count.
func TestNoApprovalsOnHubs(t *testing.T) {
	digest := strings.Repeat("a1", 16)
	at := func(minutes int, author string) comment {
		when := firstPosted.Add(time.Duration(minutes) * time.Minute)
		return comment{id: int64(minutes + 100), author: author, body: "/headgate approve " + digest + " " + commit[:7], created: when, updated: when}
	}
	review := []review{{by: at(-10, "bob"), commit: commit, approves: true}}
	for name, tc := range map[string]struct {
		reason string
		fake   fakeReviewed
		rules  Rules
		kind   Kind // "" is both
		want   []string
	}{
		"ForkAuthor":      {"ByAuthor does not allow an author without write access, such as the author of a fork.", fakeReviewed{opener: "mallory", comments: []comment{at(5, "mallory")}}, Rules{ByAuthor: true}, "", nil},
		"Coauthor":        {"A co-author of a commit may not approve.", fakeReviewed{message: "x\n\nCo-Authored-By: Bob <7+bob@users.noreply.github.com>", comments: []comment{at(5, "bob")}}, Rules{}, "", nil},
		"CoauthorCarol":   {"A co-author other than the approver does not prevent an approval.", fakeReviewed{message: "x\n\nCo-Authored-By: Carol <7+carol@users.noreply.github.com>", comments: []comment{at(5, "bob")}}, Rules{}, KindGitHub, []string{"bob"}},
		"CoauthorUnknown": {"The unknown address of a co-author may belong to the approver.", fakeReviewed{message: "x\n\nco-authored-by: B <b@example.org>", comments: []comment{at(5, "bob")}}, Rules{}, "", nil},
		"CoauthorHerself": {"The address of the co-author belongs to the author.", fakeReviewed{message: "x\n\nco-authored-by: A <Alice@example.org>", comments: []comment{at(5, "bob")}}, Rules{}, "", []string{"bob"}},
		"Demoted":         {"A user who lost write access may not approve.", fakeReviewed{demoted: true, comments: []comment{at(5, "bob")}}, Rules{}, "", nil},
		"NotPreviewed":    {"A comment does not count before Headgate has posted the digest.", fakeReviewed{silent: true, comments: []comment{at(5, "bob")}}, Rules{}, "", nil},
		"ReviewUnseen":    {"A review does not count before Headgate has posted the digest.", fakeReviewed{silent: true, reviews: review}, Rules{Reviews: true}, "", nil},
		"ReviewForged":    {"A status that the author posted must not make an older review count.", fakeReviewed{forged: true, reviews: review}, Rules{Reviews: true}, "", nil},
	} {
		for _, kind := range []Kind{KindGitHub, KindGitLab} {
			if tc.kind != "" && tc.kind != kind {
				continue
			}
			t.Run(name+"On"+string(kind), func(t *testing.T) {
				h := tc.fake
				h.kind = kind
				of, err := talkedOn(t, &h, tc.rules)
				if err != nil {
					t.Fatal(err)
				}
				all, err := of.approvals(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, a := range all {
					got = append(got, a.author)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("%s\napproved by %q, want %q", tc.reason, got, tc.want)
				}
			})
		}
	}
}

// shownInto returns the digest of a preview into a target that asks for the approval of claims, and a comment that shows what it covers.
func shownInto(target string, each ...string) (string, comment) {
	digest := claims.Into(target, each)
	return digest, comment{id: 900, author: "headgate", body: "Blocked\n<!-- headgate approves " + digest + ": " + strings.Join(each, " ") + " -->\n", created: firstPosted, updated: firstPosted}
}

// After the merge, Headgate checks again an approval that counted in the preview: the permission, the age and the target branch,
// and a review only through Headgate's own record of it.
func TestMergesOnHubs(t *testing.T) {
	digest, shown := shownInto("main", strings.Repeat("a1", 16))
	staging, shownBefore := shownInto("staging", strings.Repeat("a1", 16))
	when := firstPosted.Add(5 * time.Minute)
	approved := comment{id: 105, author: "bob", body: "/headgate approve " + digest + " " + commit[:7], created: when, updated: when}
	says := func(body string) []comment {
		c := approved
		c.body = body
		return []comment{c}
	}
	reviewed := []review{{by: comment{id: 55, author: "bob", created: when}, commit: commit, approves: true}}
	record := func(edit func(*comment)) []comment {
		c := comment{id: 200, author: "headgate", body: "<!-- headgate/platform/review/55/" + digest + " -->\nThe review of `@bob` approves `" + digest + "`", created: when, updated: when}
		if edit != nil {
			edit(&c)
		}
		return []comment{c}
	}
	for name, tc := range map[string]struct {
		reason  string
		fake    fakeReviewed
		after   time.Duration
		refuses bool
		kind    Kind
		want    int
	}{
		"Comment":        {reason: "An approval in a comment counts.", fake: fakeReviewed{comments: []comment{approved}}, want: 1},
		"NoHead":         {reason: "The comment does not name the commit that its author saw.", fake: fakeReviewed{comments: says("/headgate approve " + digest)}},
		"ShortHead":      {reason: "An author can make another commit with the same first digits.", fake: fakeReviewed{comments: says("/headgate approve " + digest + " " + commit[:6])}},
		"OtherHead":      {reason: "The comment is about an earlier commit.", fake: fakeReviewed{comments: says("/headgate approve " + digest + " 0123abc")}},
		"WholeHead":      {reason: "The comment names the commit in full.", fake: fakeReviewed{comments: says("/headgate approve " + digest + " " + commit)}, want: 1},
		"Retargeted":     {reason: "The approval was given when the target was another branch.", refuses: true, fake: fakeReviewed{comments: says("/headgate approve " + staging + " " + commit[:7])}},
		"Digest":         {reason: "The digest of a step does not depend on the target.", refuses: true, fake: fakeReviewed{comments: says("/headgate approve " + strings.Repeat("a1", 16) + " " + commit[:7])}},
		"Demoted":        {reason: "The approver no longer has write permission.", fake: fakeReviewed{comments: []comment{approved}, demoted: true}, refuses: true},
		"Old":            {reason: "The approval is too old.", refuses: true, fake: fakeReviewed{comments: []comment{approved}}, after: 8 * 24 * time.Hour},
		"OtherTarget":    {reason: "The target is another branch, where other people may approve.", fake: fakeReviewed{comments: []comment{approved}, target: "topic"}},
		"Record":         {reason: "Headgate recorded which digest the reviewer saw.", fake: fakeReviewed{reviews: reviewed, comments: record(nil)}, kind: KindGitHub, want: 1},
		"NoRecord":       {reason: "A review contains no digest.", refuses: true, fake: fakeReviewed{reviews: reviewed}, kind: KindGitHub},
		"ForeignRecord":  {reason: "Anyone can write a comment that looks like a record.", refuses: true, fake: fakeReviewed{reviews: reviewed, comments: record(func(c *comment) { c.author = "alice" })}, kind: KindGitHub},
		"EditedRecord":   {reason: "Maintainers can edit other people's comments.", refuses: true, fake: fakeReviewed{reviews: reviewed, comments: record(func(c *comment) { c.updated = when.Add(time.Minute) })}, kind: KindGitHub},
		"RecordOfOther":  {reason: "The record belongs to another review.", refuses: true, fake: fakeReviewed{reviews: reviewed, comments: record(func(c *comment) { c.body = strings.Replace(c.body, "/55/", "/56/", 1) })}, kind: KindGitHub},
		"RecordOfPerson": {reason: "The record belongs to another person's review with the same ID.", refuses: true, fake: fakeReviewed{reviews: reviewed, comments: record(func(c *comment) { c.body = strings.Replace(c.body, "@bob", "@dora", 1) })}, kind: KindGitHub},
		"OldReview":      {reason: "The head was pushed after the review.", refuses: true, fake: fakeReviewed{reviews: []review{{by: reviewed[0].by, commit: strings.Repeat("0", 40), approves: true}}, comments: record(nil)}, kind: KindGitHub},
		"EarlyReview":    {reason: "Headgate had not previewed the head when the review was written.", refuses: true, fake: fakeReviewed{reviews: []review{{by: comment{id: 55, author: "bob", created: firstPosted.Add(-time.Hour)}, commit: commit, approves: true}}, comments: record(nil)}, kind: KindGitHub},
		"DemotedReview":  {reason: "The reviewer no longer has write permission.", refuses: true, fake: fakeReviewed{reviews: reviewed, comments: record(nil), demoted: true}, kind: KindGitHub},
		"ReviewTaken":    {reason: "The record exists, but the review does not.", fake: fakeReviewed{comments: record(nil)}, kind: KindGitHub},
	} {
		for _, kind := range []Kind{KindGitHub, KindGitLab} {
			if tc.kind != "" && tc.kind != kind {
				continue
			}
			t.Run(name+"On"+string(kind), func(t *testing.T) {
				h := tc.fake
				h.kind, h.comments = kind, append(slices.Clone(h.comments), shown, shownBefore)
				pulls, _ := clientsOn(t, kind, &h)
				var refused, given []Heard
				m := &Merges{Pulls: pulls, Rules: Rules{Reviews: true}, Branch: onMain, Now: func() time.Time { return when.Add(time.Hour + tc.after) }, Heard: func(h Heard) {
					if h.Why == "" {
						given = append(given, h)
						return
					}
					refused = append(refused, h)
				}}
				all, err := m.Approvals(t.Context(), commit)
				if tc.refuses != (len(refused) == 1) || tc.refuses && (!strings.Contains(refused[0].By, "bob") || refused[0].Digest == "" && tc.fake.reviews == nil) {
					t.Errorf("%s\nrefused: %+v", tc.reason, refused)
				}
				if len(given) != tc.want || tc.want > 0 && (given[0].Digest != digest || !strings.Contains(given[0].By, "bob") || given[0].At == "") {
					t.Errorf("%s\ngiven: %+v", tc.reason, given)
				}
				if err != nil || len(all.All()) != tc.want {
					t.Errorf("%s\n%+v, %v", tc.reason, all, err)
				}
			})
		}
	}
}

// A pass that follows tags counts approvals on the pull request that merged the commit, if the Sync lists its target.
func TestMergesOfTags(t *testing.T) {
	digest, shown := shownInto("main", strings.Repeat("a1", 16))
	when := firstPosted.Add(5 * time.Minute)
	approved := comment{id: 105, author: "bob", body: "/headgate approve " + digest + " " + commit[:7], created: when, updated: when}
	for name, tc := range map[string]struct {
		reason  string
		branch  string
		targets []string
		want    int
	}{
		"Listed":    {"The Sync lists the target.", "", []string{"release", "main"}, 1},
		"NotListed": {"The Sync lists no target.", "", nil, 0},
		"Other":     {"The Sync lists another target.", "", []string{"release"}, 0},
		"Branch":    {"The Sync follows another branch.", "release", []string{"main"}, 0},
	} {
		pulls, _ := clientsOn(t, KindGitHub, &fakeReviewed{kind: KindGitHub, comments: []comment{approved, shown}})
		m := &Merges{
			Pulls: pulls, Targets: tc.targets, Branch: func(context.Context) (string, error) { return tc.branch, nil },
			Now: func() time.Time { return when.Add(time.Hour) },
		}
		if all, err := m.Approvals(t.Context(), commit); err != nil || len(all.All()) != tc.want {
			t.Errorf("%s: %s\n%+v, %v", name, tc.reason, all, err)
		}
	}
}

// A review contains no digest. It approves the digest that its user could see, whatever the head needs later.
func TestReviewOfWhatWasShownOnHubs(t *testing.T) {
	digest := strings.Repeat("a1", 16)
	when := firstPosted.Add(5 * time.Minute)
	before := when.Add(-time.Second)
	shows := func(author string, at time.Time, digest string) comment {
		return comment{id: 300, author: author, body: "<!-- headgate/platform -->\nBlocked\n\n```\n/headgate approve " + digest + " " + commit[:7] + "\n```\n", created: firstPosted, updated: at}
	}
	for name, tc := range map[string]struct {
		reason   string
		comments []comment
		want     int
	}{
		"Shown":    {"The comment of Headgate showed the digest before the review.", []comment{shows("headgate", before, digest)}, 1},
		"Second":   {"The comment may have shown another digest at the time of the review.", []comment{shows("headgate", when.Add(time.Millisecond), digest)}, 0},
		"Later":    {"The comment showed another digest until after the review.", []comment{shows("headgate", when.Add(time.Second), digest)}, 0},
		"Other":    {"The comment shows another digest.", []comment{shows("headgate", before, strings.Repeat("b2", 16))}, 0},
		"Forged":   {"A comment by the author is not a comment of Headgate.", []comment{shows("alice", before, digest)}, 0},
		"Nothing":  {"There is no comment of Headgate.", nil, 0},
		"Recorded": {"The review was recorded as counted earlier.", []comment{shows("headgate", when.Add(time.Hour), digest), {id: 301, author: "headgate", body: "<!-- headgate/platform/review/55/" + digest + " -->\nThe review", created: when, updated: when}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := &fakeReviewed{kind: KindGitHub, comments: tc.comments, reviews: []review{{by: comment{id: 55, author: "bob", created: when}, commit: commit, approves: true}}}
			pulls, record := clientsOn(t, KindGitHub, h)
			r := report.Report{Sync: inventory.Sync{Namespace: "headgate-system", Name: "platform"}, Approval: &plan.Approval{Digest: digest, Steps: 1}}
			p := &Previews{Name: "headgate/platform", Poster: record, Pulls: pulls, Pull: Pull{Number: 7, Head: commit}, Commands: map[inventory.Sync]Rules{r.Sync: {Reviews: true}}}
			all, err := p.Approvals(t.Context(), report.Combined{Reports: []report.Report{r}})
			if err != nil || len(all[r.Sync]) != tc.want {
				t.Errorf("%s\n%+v, %v", tc.reason, all, err)
			}
		})
	}
}

// A pass reads the merged pull request of a commit, and ignores open ones that contain the commit.
func TestMergedOnHubs(t *testing.T) {
	for _, kind := range []Kind{KindGitHub, KindGitLab} {
		h := &fakeReviewed{kind: kind}
		all, err := talkOn(t, h).merged(t.Context(), commit)
		if err != nil || len(all) != 1 || all[0].Number != 7 || all[0].Head != commit || all[0].Target != "main" {
			t.Errorf("%s: %+v, %v", kind, all, err)
		}
		if all, err := talkOn(t, h).merged(t.Context(), strings.Repeat("d", 40)); err != nil || len(all) > 0 {
			t.Errorf("%s: a commit of no pull request: %+v, %v", kind, all, err)
		}
	}
}

// Headgate limits its answers, so that no user can make it flood a pull request.
func TestAnswersAreBounded(t *testing.T) {
	h := &fakeReviewed{kind: KindGitHub}
	for i := range 300 {
		when := firstPosted.Add(time.Minute)
		h.comments = append(h.comments, comment{id: int64(i + 1), author: "bob", body: "/headgate preview", created: when, updated: when})
	}
	got, err := talkOn(t, h).unanswered(t.Context(), "headgate/platform")
	if err != nil || len(got) != answersOfLook {
		t.Errorf("%d answers, %v", len(got), err)
	}
	for i := range answersOfPull {
		when := firstPosted.Add(time.Hour)
		h.comments = append(h.comments, comment{id: int64(1000 + i), author: "headgate", body: fmt.Sprintf("<!-- headgate/platform/answer/%d -->\nPreviewed again", i+1), created: when, updated: when})
	}
	if got, err := talkOn(t, h).unanswered(t.Context(), "headgate/platform"); err != nil || len(got) > 0 {
		t.Errorf("%d more answers, %v", len(got), err)
	}
	of := talkOn(t, h)
	r := report.Report{Approval: &plan.Approval{Digest: strings.Repeat("a1", 16)}}
	if text, err := of.answer(t.Context(), comment{author: "alice", body: "/headgate approve " + r.Approval.Digest + " " + commit[:7]}, report.Combine([]report.Report{r}), map[inventory.Sync]Rules{{}: {}}); err != nil || text != "" {
		t.Errorf("an author is answered: %q, %v", text, err)
	}
}
