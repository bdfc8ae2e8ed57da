package forge

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	claims "headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
)

// A fakeListed answers like the documented APIs of Bitbucket Cloud, Bitbucket Data Center and Azure DevOps for pull request 7 of
// acme/platform. None of them reveals to an ordinary token who has write permission.
type fakeListed struct {
	kind     Kind
	comments []comment // author holds a person's name
	commits  []listedCommit
	pushes   []listedPush // oldest first; if empty, the head is as old as the pull request
	merge    string       // merge commit
	asked    []string
	broken   string // part of a path that returns an error

	mu   sync.Mutex
	made int64
	gate *sync.WaitGroup // number of writers that must list the comments before the first one writes; may be nil
}

type listedCommit struct{ author, email, message string } // without an author, the address belongs to no user

type listedPush struct {
	head, by string
	at       time.Time
}

var opened = firstPosted.Add(-time.Hour)

func (h *fakeListed) user(name string) object {
	switch h.kind {
	case KindBitbucket: // anyone may choose any nickname
		return object{"type": "user", "uuid": "{" + name + "-uuid}", "account_id": "557058:" + name, "nickname": strings.TrimSuffix(name, "-the-thief"), "display_name": "A Person"}
	case KindBitbucketDataCenter:
		return object{"name": name, "slug": name, "id": crc32.ChecksumIEEE([]byte(name)), "type": "NORMAL", "active": true, "emailAddress": name + "@example.org"}
	}
	return object{"id": name + "-id", "uniqueName": name + "@example.org", "displayName": "A Person"}
}

func (h *fakeListed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.gate != nil && r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/comments") || strings.HasSuffix(r.URL.Path, "/threads")) {
		h.gate.Done()
		h.gate.Wait()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	path := r.URL.EscapedPath()
	h.asked = append(h.asked, r.Method+" "+path)
	answer := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		answerJSON(w, http.StatusOK, string(raw))
	}
	if h.broken != "" && strings.Contains(path, h.broken) {
		answerJSON(w, http.StatusBadGateway, `{}`)
		return
	}
	if r.Method == http.MethodDelete {
		h.comments = slices.DeleteFunc(h.comments, func(c comment) bool {
			return slices.Contains(strings.Split(path, "/"), strconv.FormatInt(c.id, 10))
		})
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.Method == http.MethodPut || r.Method == http.MethodPatch {
		h.edited(path, r)
		answer(object{"id": 1})
		return
	}
	switch h.kind {
	case KindBitbucket:
		h.cloud(strings.TrimPrefix(path, "/2.0"), w, r, answer)
	case KindBitbucketDataCenter:
		h.centre(strings.TrimPrefix(path, "/rest"), w, r, answer)
	default:
		h.azure(path, w, r, answer)
	}
}

// addComment adds one of Headgate's comments.
func (h *fakeListed) addComment(r *http.Request) {
	body, _ := sent(r)
	now := firstPosted.Add(time.Hour)
	h.made++
	h.comments = append(h.comments, comment{id: 500 + h.made, author: "headgate", body: body, created: now, updated: now})
}

// edited edits one of Headgate's comments.
func (h *fakeListed) edited(path string, r *http.Request) {
	body, _ := sent(r)
	for i, c := range h.comments {
		if slices.Contains(strings.Split(path, "/"), strconv.FormatInt(c.id, 10)) {
			h.comments[i].body, h.comments[i].updated = body, firstPosted.Add(2*time.Hour)
		}
	}
}

func (h *fakeListed) cloud(path string, w http.ResponseWriter, r *http.Request, answer func(any)) {
	of := object{"full_name": "acme/platform"}
	pull := object{"id": 7, "author": h.user("alice"), "created_on": opened, "source": object{"commit": object{"hash": commit[:12]}, "repository": of}, "destination": object{"branch": object{"name": "main"}, "repository": of}}
	values := func(all []object) { answer(object{"values": all}) }
	var all []object
	switch below := strings.TrimPrefix(path, "/repositories/acme/platform"); below {
	case "/user":
		answer(h.user("headgate"))
	case "/pullrequests/7":
		answer(pull)
	case "/pullrequests":
		if h.merge != "" {
			pull["merge_commit"] = object{"hash": h.merge[:12]}
		}
		values([]object{pull})
	case "/pullrequests/7/commits":
		for _, c := range h.commits {
			by := object{"raw": "X <" + c.email + ">"}
			if c.author != "" {
				by["user"] = h.user(c.author)
			}
			all = append(all, object{"hash": commit, "message": c.message, "author": by})
		}
		values(all)
	case "/pullrequests/7/comments":
		if r.Method == http.MethodPost {
			h.addComment(r)
			answer(object{"id": 1})
			return
		}
		for _, c := range h.comments {
			all = append(all, object{"id": c.id, "deleted": c.body == "", "content": object{"raw": c.body}, "user": h.user(c.author), "created_on": c.created, "updated_on": c.updated})
		}
		values(all)
	case "/pullrequests/7/activity":
		all = append(all, object{"comment": object{"id": 1}})
		for _, p := range slices.Backward(h.pushes) {
			all = append(all, object{"update": object{"date": p.at, "author": h.user(p.by), "source": object{"commit": object{"hash": p.head[:12]}}}})
		}
		values(all)
	case "/commit/" + commit + "/statuses":
		values([]object{{"key": buildKey("headgate/platform/preview"), "name": "headgate/platform/preview", "state": "FAILED", "created_on": firstPosted, "updated_on": firstPosted.Add(time.Hour)}})
	case "/commit/" + commit + "/statuses/build":
		answer(object{})
	case "/commits/" + h.merge:
		values([]object{{"hash": h.merge, "date": firstPosted}, {"hash": commit, "date": firstPosted.Add(-30 * 24 * time.Hour)}})
	default:
		answerJSON(w, http.StatusNotFound, `{}`)
	}
}

func (h *fakeListed) centre(path string, w http.ResponseWriter, r *http.Request, answer func(any)) {
	of := object{"id": 1, "slug": "platform"}
	pull := object{"id": 7, "author": object{"user": h.user("alice")}, "createdDate": opened.UnixMilli(), "fromRef": object{"latestCommit": commit, "repository": of}, "toRef": object{"id": "refs/heads/main", "repository": of}}
	values := func(all []object) { answer(object{"values": all, "isLastPage": true}) }
	var all []object
	switch below := strings.TrimPrefix(path, "/api/latest/projects/acme/repos/platform"); below {
	case "":
		w.Header().Set("X-Ausername", "headgate")
		answer(of)
	case "/pull-requests/7":
		answer(pull)
	case "/pull-requests":
		pull["properties"] = object{"mergeCommit": object{"id": h.merge}}
		values([]object{pull})
	case "/pull-requests/7/commits":
		for _, c := range h.commits {
			by := object{"name": "dora", "emailAddress": c.email} // the name in a Git commit is arbitrary
			if c.author != "" {
				by = h.user(c.author)
				by["emailAddress"] = c.email
			}
			all = append(all, object{"id": commit, "message": c.message, "author": by, "committer": by})
		}
		values(all)
	case "/pull-requests/7/comments":
		h.addComment(r)
		answer(object{"id": 1})
	case "/pull-requests/7/activities":
		for _, c := range h.comments {
			if c.body != "" {
				all = append(all, object{"action": "COMMENTED", "comment": object{"id": c.id, "version": 1, "text": c.body, "author": h.user(c.author), "createdDate": c.created.UnixMilli(), "updatedDate": c.updated.UnixMilli()}})
			}
		}
		for i, p := range slices.Backward(h.pushes) {
			before := strings.Repeat("0", 40)
			if i > 0 {
				before = h.pushes[i-1].head
			}
			all = append(all, object{"action": "RESCOPED", "user": h.user(p.by), "createdDate": p.at.UnixMilli(), "fromHash": p.head, "previousFromHash": before})
		}
		values(append(all, object{"action": "OPENED", "createdDate": opened.UnixMilli()}))
	case "/build-status/latest/commits/" + commit:
		values([]object{{"key": buildKey("headgate/platform/preview"), "name": "headgate/platform/preview", "state": "FAILED", "dateAdded": firstPosted.Add(time.Hour).UnixMilli()}})
	case "/commits/" + commit + "/builds":
		w.WriteHeader(http.StatusNoContent)
	case "/commits":
		values([]object{{"id": h.merge, "committerTimestamp": firstPosted.UnixMilli()}})
	default:
		answerJSON(w, http.StatusNotFound, `{}`)
	}
}

func (h *fakeListed) azure(path string, w http.ResponseWriter, r *http.Request, answer func(any)) {
	pull := object{"pullRequestId": 7, "status": "completed", "createdBy": h.user("alice"), "targetRefName": "refs/heads/main", "lastMergeSourceCommit": object{"commitId": commit}}
	values := func(all []object) { answer(object{"value": all, "count": len(all)}) }
	var all []object
	switch below := strings.TrimPrefix(path, "/acme/_apis/git/repositories/platform"); below {
	case "/_apis/connectionData":
		answer(object{"authenticatedUser": h.user("headgate")})
	case "/pullRequests/7":
		answer(pull)
	case "/pullrequestquery":
		answer(object{"results": []object{{h.merge: []object{pull}}, {h.merge: []object{{"pullRequestId": 8, "status": "active"}}}}})
	case "/pullRequests/7/commits":
		for _, c := range h.commits {
			all = append(all, object{"commitId": commit, "comment": c.message[:min(len(c.message), 6)], "commentTruncated": len(c.message) > 6, "author": object{"email": c.email}, "committer": object{"email": c.email}})
		}
		values(all)
	case "/commits/" + commit:
		answer(object{"commitId": commit, "comment": h.commits[len(h.commits)-1].message})
	case "/pullRequests/7/iterations":
		for i, p := range append([]listedPush{{commit, "alice", opened}}[:min(1, max(0, 1-len(h.pushes)))], h.pushes...) {
			all = append(all, object{"id": i + 1, "author": h.user(p.by), "createdDate": p.at, "sourceRefCommit": object{"commitId": p.head}})
		}
		values(all)
	case "/pullRequests/7/threads":
		if r.Method == http.MethodPost {
			h.addComment(r)
			answer(object{"id": 1})
			return
		}
		for _, c := range h.comments {
			is := object{"id": 1, "isDeleted": c.body == "", "content": c.body, "commentType": "text", "author": h.user(c.author), "publishedDate": c.created, "lastContentUpdatedDate": c.updated}
			all = append(all, object{"id": c.id, "comments": []object{is, {"id": 2, "content": "/headgate approve " + strings.Repeat("e5", 16) + " " + commit[:7], "author": h.user("bob"), "publishedDate": c.created, "lastContentUpdatedDate": c.created}}})
		}
		values(all)
	case "/commits/" + commit + "/statuses":
		if r.Method == http.MethodPost {
			answer(object{})
			return
		}
		for i, state := range []string{"succeeded", "failed", "pending"} {
			all = append(all, object{"id": 9 - i, "state": state, "creationDate": firstPosted.Add(time.Duration(1-i) * time.Hour), "createdBy": h.user("headgate"), "context": object{"genre": "headgate", "name": "platform/preview"}})
		}
		values(all)
	case "/pullRequests/7/statuses":
		answer(object{})
	case "/commits":
		values([]object{{"commitId": h.merge, "committer": object{"date": firstPosted}}})
	default:
		answerJSON(w, http.StatusNotFound, `{}`)
	}
}

// listedKinds maps each forge with a list of approvers to the way in which the list names a person.
var listedKinds = map[Kind]func(name string) string{
	KindBitbucket:           func(name string) string { return "557058:" + name },
	KindBitbucketDataCenter: func(name string) string { return name },
	KindAzureDevOps:         func(name string) string { return name + "@example.org" },
}

func clientsOn(t *testing.T, kind Kind, h http.Handler) (*Pulls, Record) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	of := Account{Repository: Repository{Kind: kind, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(canary)}
	pulls, err := of.Pulls()
	if err != nil {
		t.Fatal(err)
	}
	record, err := of.Poster()
	if err != nil {
		t.Fatal(err)
	}
	return pulls, record
}

// If a forge does not reveal who has write permission, only listed people can approve. The facts that the forge does know still
// restrict them: who opened, pushed and wrote, and when.
func TestApprovalsOfListed(t *testing.T) {
	digest := strings.Repeat("a1", 16)
	at := func(minutes int, author string) comment {
		when := firstPosted.Add(time.Duration(minutes) * time.Minute)
		return comment{id: int64(minutes + 100), author: author, body: "/headgate approve " + digest + " " + commit[:7], created: when, updated: when}
	}
	edited, deleted := at(5, "bob"), at(5, "bob")
	edited.updated = edited.updated.Add(time.Minute)
	deleted.body = ""
	other := strings.Repeat("b", 40)
	alice := listedCommit{"alice", "alice@example.org", "change"}
	for name, tc := range map[string]struct {
		reason   string
		comments []comment
		commits  []listedCommit
		pushes   []listedPush
		listed   []string
		byAuthor bool
		kind     Kind // "" is all
		want     []string
	}{
		"Listed":      {reason: "The sync lists the approver.", comments: []comment{at(5, "bob")}, listed: []string{"bob"}, want: []string{"bob"}},
		"Other":       {reason: "The sync lists another person.", comments: []comment{at(5, "carol")}, listed: []string{"bob"}},
		"Nobody":      {reason: "The list is empty, and everyone may comment on a public repository.", comments: []comment{at(5, "bob")}},
		"Nickname":    {reason: "Anyone may choose the name of a listed person.", comments: []comment{at(5, "bob-the-thief")}, listed: []string{"bob"}},
		"Author":      {reason: "Authors cannot approve their own pull request.", comments: []comment{at(5, "alice")}, listed: []string{"alice"}},
		"TeamOfOne":   {reason: "The sync allows approvals by the author.", comments: []comment{at(5, "alice")}, listed: []string{"alice"}, byAuthor: true, want: []string{"alice"}},
		"Committer":   {reason: "The approver wrote one of the commits.", comments: []comment{at(5, "bob")}, commits: []listedCommit{{"bob", "bob@example.org", "x"}}, listed: []string{"bob"}},
		"Coauthor":    {reason: "The approver wrote a part of a commit, according to its message.", comments: []comment{at(5, "bob")}, commits: []listedCommit{{"alice", "alice@example.org", "x\n\nCo-authored-by: Bob <bob@example.org>"}}, listed: []string{"bob"}},
		"Unknown":     {reason: "The unknown address may belong to the approver.", comments: []comment{at(5, "bob")}, commits: []listedCommit{{"", "private@example.org", "x"}}, listed: []string{"bob"}},
		"Pusher":      {reason: "The approver pushed the head, although the author of the commit is another person.", comments: []comment{at(5, "bob")}, pushes: []listedPush{{other, "alice", opened}, {commit, "bob", opened}}, listed: []string{"bob"}},
		"OldPusher":   {reason: "The approver pushed an older head.", comments: []comment{at(5, "bob")}, pushes: []listedPush{{commit, "alice", opened}, {other, "bob", opened}, {commit, "alice", opened}}, listed: []string{"bob"}},
		"Edited":      {reason: "Other people can edit a comment.", comments: []comment{edited}, listed: []string{"bob"}},
		"Deleted":     {reason: "The approver deleted the comment.", comments: []comment{deleted}, listed: []string{"bob"}},
		"Early":       {reason: "The comment is older than the head.", comments: []comment{at(-70, "bob")}, listed: []string{"bob"}},
		"OlderHead":   {reason: "The comment approves an older head, and this head was previewed earlier somewhere else.", comments: []comment{at(5, "bob")}, pushes: []listedPush{{other, "alice", opened}, {commit, "alice", firstPosted.Add(6 * time.Minute)}}, listed: []string{"bob"}},
		"NewHead":     {reason: "The comment approves the newest head.", comments: []comment{at(7, "bob")}, pushes: []listedPush{{other, "alice", opened}, {commit, "alice", firstPosted.Add(6 * time.Minute)}}, listed: []string{"bob"}, want: []string{"bob"}},
		"TargetMoved": {reason: "Only the target branch has moved.", comments: []comment{at(5, "bob")}, pushes: []listedPush{{commit, "alice", opened}, {commit, "alice", firstPosted.Add(6 * time.Minute)}}, listed: []string{"bob"}, want: []string{"bob"}},
		"Overtaken":   {reason: "The forge already has a newer head.", comments: []comment{at(5, "bob")}, pushes: []listedPush{{commit, "alice", opened}, {other, "alice", firstPosted.Add(6 * time.Minute)}}, listed: []string{"bob"}},
	} {
		for kind, called := range listedKinds {
			if tc.kind != "" && tc.kind != kind {
				continue
			}
			t.Run(name+"On"+string(kind), func(t *testing.T) {
				h := &fakeListed{kind: kind, comments: tc.comments, commits: append([]listedCommit{alice}, tc.commits...), pushes: tc.pushes}
				pulls, _ := clientsOn(t, kind, h)
				rules := Rules{ByAuthor: tc.byAuthor}
				for _, name := range tc.listed {
					rules.Approvers = append(rules.Approvers, called(name))
				}
				of, err := pulls.conversation(t.Context(), Pull{Number: 7, Head: commit}, rules)
				if err != nil {
					t.Fatal(err)
				}
				if err := of.readSelf(t.Context()); err != nil {
					t.Fatal(err)
				}
				all, err := of.approvals(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, a := range all {
					got = append(got, strings.TrimSuffix(strings.Trim(a.author, "{}"), map[Kind]string{KindBitbucket: "-uuid", KindAzureDevOps: "-id"}[kind]))
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("%s\napproved by %q, want %q", tc.reason, got, tc.want)
				}
			})
		}
	}
}

// The whole path from the comment to the pass after the merge: the digest covers what the preview lists, even on forges without
// HTML.
func TestListedFromPreviewToMerge(t *testing.T) {
	each := []string{strings.Repeat("a1", 16), strings.Repeat("b2", 16)}
	digest, whole := claims.DigestOf(each), claims.Into("main", each)
	merge := strings.Repeat("d", 40)
	for kind, called := range listedKinds {
		t.Run(string(kind), func(t *testing.T) {
			h := &fakeListed{kind: kind, commits: []listedCommit{{"alice", "alice@example.org", "change"}}, merge: merge}
			pulls, record := clientsOn(t, kind, h)
			rules := &Rules{Approvers: []string{called("bob")}}
			of := inventory.Sync{Namespace: "headgate-system", Name: "platform"}
			p := &Previews{Name: "headgate/platform", Poster: record, Pulls: pulls, Pull: Pull{Number: 7, Head: commit, Target: "main"}, Commands: map[inventory.Sync]Rules{of: *rules}}
			asked := report.Report{Kind: "Report", Sync: of, Revision: commit, Preview: &report.Preview{}}
			asked.Steps = []report.Step{{Action: plan.Hold, Would: plan.Prune, Guard: "many", Digest: each[0]}, {Action: plan.Hold, Would: plan.Prune, Guard: "many", Digest: each[1]}}
			asked.Summary.Held = 2
			asked.Approval = &plan.Approval{Digest: digest, Steps: 2, Guards: []plan.GuardName{"many"}, Each: each}
			asked = asked.On(nil)
			preview := func() report.Report {
				t.Helper()
				given, err := p.Approvals(t.Context(), report.Combine([]report.Report{asked}))
				if err != nil {
					t.Fatal(err)
				}
				result := asked.Approve(given[of]).On(nil)
				if err := p.Publish(t.Context(), report.Combine([]report.Report{result})); err != nil {
					t.Fatal(err)
				}
				return result
			}
			if result := preview(); result.Verdict.Activation.State == report.Success || len(h.comments) != 1 || !strings.Contains(h.comments[0].body, "approvals.approvers") {
				t.Fatalf("the preview asks a listed approver: %+v %+v", result.Verdict, h.comments)
			}
			when := firstPosted.Add(5 * time.Minute)
			h.comments = append(h.comments, comment{id: 105, author: "bob", body: "/headgate approve " + whole + " " + commit[:7] + "\r\nthanks", created: when, updated: when}, comment{id: 106, author: "carol", body: "/headgate preview", created: when, updated: when})
			if heard, err := p.Heard(t.Context(), true); !heard || err != nil {
				t.Errorf("heard %t, %v", heard, err)
			}
			if result := preview(); result.Verdict.Activation.State != report.Success {
				t.Errorf("the status is %+v", result.Verdict)
			}
			if n := len(h.comments); n != 4 || !strings.Contains(h.comments[3].body, "Approved") {
				t.Errorf("one answer, to bob: %+v", h.comments)
			}
			preview()
			if len(h.comments) != 4 {
				t.Errorf("it answers once: %+v", h.comments)
			}
			h.comments = append(h.comments, comment{id: 107, author: "bob", body: "/headgate explain nothing", created: when, updated: when})
			preview()
			if len(h.comments) != 6 {
				t.Errorf("each command has an answer: %+v", h.comments)
			}
			with := h.comments
			h.comments = []comment{{id: 108, author: "bob", body: "/headgate approve " + strings.Repeat("c3", 16) + " " + commit[:7], created: when, updated: when}}
			if given, err := p.Approvals(t.Context(), report.Combine([]report.Report{asked})); err != nil || len(given[of]) != 0 {
				t.Errorf("it is of something else: %+v, %v", given, err)
			}
			h.comments = with
			api, ok := pulls.pullAPI.(approvalAPI)
			if !ok {
				t.Fatal("the forge has no approvals")
			}
			if made, err := api.merged(t.Context(), strings.Repeat("c", 40)); err != nil || len(made) != 0 {
				t.Errorf("another commit is of no pull request: %+v, %v", made, err)
			}
			m := &Merges{Pulls: pulls, Rules: *rules, Branch: onMain, Now: func() time.Time { return firstPosted.Add(time.Hour) }}
			given, err := m.Approvals(t.Context(), merge)
			all := given[inventory.InComment]
			if err != nil || len(all) != 1 || len(all[0].Digests) != 3 || all[0].Expires.IsZero() || !strings.Contains(all[0].By, "bob") {
				t.Errorf("got %+v, %v", all, err)
			}
			for i, c := range h.comments {
				if strings.HasPrefix(c.body, "/headgate approve") {
					h.comments[i].id, h.comments[i].thread = 205, 205
				}
			}
			m = &Merges{Pulls: pulls, Rules: *rules, Branch: onMain, Now: func() time.Time { return firstPosted.Add(time.Hour) }}
			given, err = m.Approvals(t.Context(), merge)
			if again := given[inventory.InComment]; err != nil || len(all) != 1 || len(again) != 1 || again[0].ID == all[0].ID || all[0].ID == "" {
				t.Errorf("another comment is another approval: %+v and %+v, %v", all, again, err)
			}
			for _, part := range []string{"commit", "omments", "activity", "threads", "iterations", "ull"} {
				h.broken = part
				m := &Merges{Pulls: pulls, Rules: *rules, Branch: onMain, Now: func() time.Time { return firstPosted.Add(time.Hour) }}
				if got, err := m.Approvals(t.Context(), merge); err == nil && len(got.All()) != 1 {
					t.Errorf("%s cannot be read, and that is no verdict: %+v", part, got)
				}
			}
		})
	}
}

// Two clusters preview one pull request with the same account, in separate processes. In any order, a command gets one answer, and
// both count the approval after the merge.
func TestTwoClusters(t *testing.T) {
	digest := strings.Repeat("a1", 16)
	merge := strings.Repeat("d", 40)
	for kind, called := range listedKinds {
		t.Run(string(kind), func(t *testing.T) {
			when := firstPosted.Add(5 * time.Minute)
			h := &fakeListed{kind: kind, commits: []listedCommit{{"alice", "alice@example.org", "change"}}, merge: merge}
			h.comments = []comment{{id: 105, author: "bob", body: "/headgate approve " + claims.Into("main", []string{digest}) + " " + commit[:7], created: when, updated: when}}
			asked := report.Report{Kind: "Report", Sync: inventory.Sync{Namespace: "headgate-system", Name: "platform"}, Revision: commit, Preview: &report.Preview{}}
			asked.Steps = []report.Step{{Action: plan.Hold, Would: plan.Prune, Guard: "many", Digest: digest}}
			asked.Summary.Held = 1
			asked.Approval = &plan.Approval{Digest: digest, Steps: 1, Guards: []plan.GuardName{"many"}}
			asked = asked.On(nil)
			all := report.Combine([]report.Report{asked})
			type cluster struct {
				*Previews
				*Merges
			}
			var clusters []cluster
			for range 2 {
				pulls, record := clientsOn(t, kind, h)
				rules := Rules{Approvers: []string{called("bob")}}
				clusters = append(clusters, cluster{
					&Previews{Name: "headgate/platform", Poster: record, Pulls: pulls, Pull: Pull{Number: 7, Head: commit, Target: "main"}, Commands: map[inventory.Sync]Rules{asked.Sync: rules}},
					&Merges{Pulls: pulls, Rules: rules, Branch: onMain, Now: func() time.Time { return firstPosted.Add(time.Hour) }},
				})
			}
			answers := func() (n int) {
				for _, c := range h.comments {
					if strings.Contains(c.body, "/answer/") {
						n++
					}
				}
				return n
			}
			// Both clusters read before either answers.
			for _, c := range clusters {
				if given, err := c.Previews.Approvals(t.Context(), all); err != nil || len(given[asked.Sync]) != 1 {
					t.Fatalf("%+v, %v", given, err)
				}
			}
			if err := clusters[0].Publish(t.Context(), all); err != nil { // otherwise both would create the comment of the preview
				t.Fatal(err)
			}
			h.comments = slices.DeleteFunc(h.comments, func(c comment) bool { return strings.Contains(c.body, "/answer/") })
			h.gate = new(sync.WaitGroup)
			h.gate.Add(len(clusters))
			var both sync.WaitGroup
			for _, c := range clusters {
				both.Go(func() {
					if err := c.answer(t.Context(), all); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			h.gate = nil
			if n := answers(); n != 1 {
				t.Errorf("%d answers: %+v", n, h.comments)
			}
			for range 2 {
				for _, c := range clusters {
					given, err := c.Previews.Approvals(t.Context(), all)
					if err != nil || len(given[asked.Sync]) != 1 {
						t.Errorf("%+v, %v", given, err)
					}
					if err := c.Publish(t.Context(), report.Combine([]report.Report{asked.Approve(given[asked.Sync]).On(nil)})); err != nil {
						t.Error(err)
					}
				}
			}
			if n := answers(); n != 1 {
				t.Errorf("%d answers after more looks: %+v", n, h.comments)
			}
			before := len(h.comments)
			for range 2 {
				for _, c := range clusters {
					if all, err := c.Merges.Approvals(t.Context(), merge); err != nil || len(all.All()) != 1 || all.All()[0].Digests[1] != digest {
						t.Errorf("after the merge: %+v, %v", all, err)
					}
				}
			}
			if len(h.comments) != before {
				t.Errorf("a pass writes nothing on the pull request: %+v", h.comments)
			}
		})
	}
}

// Rules that a forge cannot check are refused when the Sync is loaded.
func TestCheckOfRules(t *testing.T) {
	for kind := range listedKinds {
		for name, tc := range map[string]struct {
			rules Rules
			wrong string
		}{
			"Listed":  {Rules{Approvers: []string{"bob"}}, ""},
			"Nobody":  {Rules{}, "list the approvers"},
			"Reviews": {Rules{Approvers: []string{"bob"}, Reviews: true}, "reviews do not count"},
		} {
			err := kind.Check(tc.rules)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s on %s: %v", name, kind, err)
			}
		}
	}
	for _, f := range All() {
		of, err := f.open(Repository{Kind: f.Kind, Base: "https://example.org", Owner: "a", Name: "b"}, "https://example.org/", http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		_, approves := of.(approvalAPI)
		_, writers := of.(writerAPI)
		_, pushes := of.(pushAPI)
		if !approves || writers == f.listed || f.listed && !pushes {
			t.Errorf("%s: what the client can do is not what the forge is described as: %t %t %t", f.Name, approves, writers, pushes)
		}
	}
	if err := KindGitHub.Check(Rules{Reviews: true}); err != nil {
		t.Error(err)
	}
}

// onMain returns the branch that a sync follows.
func onMain(context.Context) (string, error) { return "main", nil }
