package forge_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	claims "headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
)

// A reviewed is a pull request on a real Gitea with its users: alice wrote it, bob may write, carol may read.
type reviewed struct {
	*testing.T

	gitea  *fixtures.Gitea
	cloned string
	repo   string
	number int
	branch string
	tokens map[string]string
	rules  forge.Rules
}

func newReviewed(t *testing.T, g *fixtures.Gitea, tokens map[string]string, repo string) *reviewed {
	t.Helper()
	r := &reviewed{T: t, gitea: g, tokens: tokens, repo: repo, cloned: g.CreateRepo(t, repo), branch: "change", number: 1}
	for user, may := range map[string]string{"alice": "write", "bob": "write", "carol": "read"} {
		r.may(user, may)
	}
	g.Commit(t, repo, "a.yaml", "a: 1\n")
	r.push("alice", "a.yaml", "a: 2\n", nil)
	r.as("alice", http.MethodPost, "/pulls", map[string]any{"head": r.branch, "base": "main", "title": "change"}, nil)
	return r
}

func (r *reviewed) path(below string) string { return "/repos/" + r.gitea.Owner + "/" + r.repo + below }

func (r *reviewed) as(user, method, below string, body, into any) {
	r.Helper()
	r.gitea.CallAs(r.T, r.tokens[user], method, r.path(below), body, into)
}

func (r *reviewed) may(user, permission string) {
	r.Helper()
	r.gitea.Call(r.T, http.MethodPut, r.path("/collaborators/"+user), map[string]string{"permission": permission}, nil)
}

// push commits to the branch as a user, with any author.
func (r *reviewed) push(user, file, content string, author map[string]string) {
	r.Helper()
	body := map[string]any{"message": "write " + file, "content": base64.StdEncoding.EncodeToString([]byte(content))}
	if author != nil {
		body["author"], body["committer"] = author, author
	}
	var old struct{ SHA string }
	branches := []map[string]any{}
	r.gitea.Call(r.T, http.MethodGet, r.path("/branches"), nil, &branches)
	on := "main"
	if slices.ContainsFunc(branches, func(b map[string]any) bool { return b["name"] == r.branch }) {
		on = r.branch
	} else {
		body["new_branch"] = r.branch
	}
	body["branch"] = on
	var files []struct{ Name, SHA string }
	r.gitea.Call(r.T, http.MethodGet, r.path("/contents?ref="+on), nil, &files)
	for _, f := range files {
		if f.Name == file {
			old.SHA = f.SHA
		}
	}
	method := http.MethodPost
	if old.SHA != "" {
		method, body["sha"] = http.MethodPut, old.SHA
	}
	r.as(user, method, "/contents/"+file, body, nil)
}

// says posts a comment as a user, and returns its ID.
func (r *reviewed) says(user, body string) int64 {
	r.Helper()
	var made struct{ ID int64 }
	r.as(user, http.MethodPost, fmt.Sprintf("/issues/%d/comments", r.number), map[string]string{"body": body}, &made)
	return made.ID
}

// tick waits for the next full second, because Gitea's timestamps have no fractions.
func tick() {
	for began := time.Now().Unix(); time.Now().Unix() == began; {
		time.Sleep(5 * time.Millisecond)
	}
}

// comments returns the comments on the pull request, without marks.
func (r *reviewed) comments() []string {
	r.Helper()
	var all []struct {
		Body string
		User struct{ Login string }
	}
	r.gitea.Call(r.T, http.MethodGet, r.path(fmt.Sprintf("/issues/%d/comments?limit=50", r.number)), nil, &all)
	var lines []string
	for _, c := range all {
		_, below, marked := strings.Cut(c.Body, "-->\n")
		if !marked {
			below = c.Body
		}
		lines = append(lines, c.User.Login+": "+below)
	}
	return lines
}

// asked returns the report of a preview that one hold blocks.
func asked(digest string) report.Report {
	r := report.Report{Kind: "Report", Sync: inventory.Sync{Namespace: "headgate-system", Name: "platform"}, Revision: strings.Repeat("a", 40), Preview: &report.Preview{}}
	r.Steps = []report.Step{{Action: plan.Hold, Would: plan.Prune, Guard: "many", Digest: digest}}
	r.Summary.Held = 1
	r.Approval = &plan.Approval{Digest: digest, Steps: 1, Guards: []plan.GuardName{"many"}}
	r.Definitions = []report.Definition{{Name: "buckets.example.org", Active: true}}
	return r.On(nil)
}

// preview previews once in a new process, like the loop: it reads the approvals and publishes.
func (r *reviewed) preview(digest string) report.Report {
	r.Helper()
	p := r.previews(r.gitea.Token)
	result := asked(digest)
	given, err := p.Approvals(r.Context(), report.Combine([]report.Report{result}))
	if err != nil {
		r.Fatal(err)
	}
	result = result.Approve(given[result.Sync]).On(nil)
	if err := p.Publish(r.Context(), report.Combine([]report.Report{result})); err != nil {
		r.Fatal(err)
	}
	return result
}

func (r *reviewed) previews(token string) *forge.Previews {
	r.Helper()
	at, err := forge.RepositoryOf(r.cloned, "")
	if err != nil {
		r.Fatal(err)
	}
	at.Kind = forge.KindGitea
	account := forge.Account{Repository: at, Token: forge.Token(token)}
	of := inventory.Sync{Namespace: "headgate-system", Name: "platform"}
	p := &forge.Previews{Name: forge.NameOfSync(of, "", "headgate-system"), Commands: map[inventory.Sync]forge.Rules{of: r.rules}}
	if p.Pulls, err = account.Pulls(); err != nil {
		r.Fatal(err)
	}
	if p.Poster, err = account.Poster(); err != nil {
		r.Fatal(err)
	}
	if p.Pull, err = p.Pulls.Pull(r.Context(), r.number); err != nil {
		r.Fatal(err)
	}
	return p
}

// want checks who approved, judging by the status that users see.
func (r *reviewed) want(reason, digest, by string) {
	r.Helper()
	result := r.preview(digest)
	state, got := result.Verdict.Activation.State, ""
	for _, a := range result.Approvals {
		got = a.By
	}
	if got != by || (state == report.Success) != (by != "") {
		r.Errorf("%s\nthe status is %s, approved by %q; want %q\n%s", reason, state, got, by, strings.Join(r.comments(), "\n"))
	}
}

// approve returns the command that the preview shows for claims.
func (r *reviewed) approve(each ...string) string {
	r.Helper()
	pull := r.previews(r.gitea.Token).Pull
	return "/headgate approve " + claims.Into(pull.Target, each) + " " + pull.Head[:7]
}

var digestA, digestB = strings.Repeat("a1", 16), strings.Repeat("b2", 16)

// A real Gitea identifies the users. A comment must not open a gate for an author or a reader, nor after another person changed it.
//
//test:long
func TestCommandsOnGitea(t *testing.T) {
	g := fixtures.StartGitea(t)
	tokens := map[string]string{g.Owner: g.Token}
	for _, user := range []string{"alice", "bob", "carol"} {
		tokens[user] = g.User(t, user, "all")
	}

	t.Run("Approved", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "approved")
		r.says("bob", r.approve(digestA))
		tick()
		r.want("A comment from before the first preview, which posts the digest, does not count.", digestA, "")
		r.says("alice", r.approve(digestA))
		r.says("carol", r.approve(digestA))
		r.says("headgate", r.approve(digestA))
		r.want("The author, a reader and the account of Headgate may not approve.", digestA, "")
		r.says("bob", r.approve(digestB))
		r.want("A comment with another digest approves nothing.", digestA, "")
		answered := len(r.comments())
		r.says("bob", r.approve(digestA)+"\n\nThe buckets are empty.")
		r.want("Another user with write access may approve.", digestA, "@bob")
		r.want("The approval counts after a restart, too.", digestA, "@bob")
		if got := r.comments(); len(got) != answered+2 || !strings.Contains(got[len(got)-1], "Approved: `"+claims.Into("main", []string{digestA})+"`") {
			t.Errorf("want one answer: %s", strings.Join(got, "\n"))
		}
		for _, c := range r.comments() {
			if strings.HasPrefix(c, "headgate: ") && (strings.Contains(c, "alice") || strings.Contains(c, "carol")) {
				t.Errorf("Headgate answers those whom it ignores: %s", c)
			}
		}
		r.want("Another digest is needed now.", digestB, "@bob") // bob also approved this digest
		tick()
		r.push("alice", "a.yaml", "a: 3\n", nil)
		r.want("A push revokes the approval, even for the same digest.", digestA, "")
		r.want("The approval stays revoked after the new head was previewed.", digestA, "")
		r.says("bob", r.approve(digestA))
		r.want("The new head may be approved again.", digestA, "@bob")
		r.may("bob", "read")
		r.want("The approval of a user who lost write access does not count.", digestA, "")
	})

	t.Run("Edited", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "edited")
		r.want("", digestA, "")
		id := r.says("bob", "Looks good to me.")
		tick()
		r.gitea.Call(t, http.MethodPatch, r.path(fmt.Sprintf("/issues/comments/%d", id)), map[string]string{"body": r.approve(digestA)}, nil)
		r.want("An edited comment does not count, because other users can edit comments.", digestA, "")
		if all := strings.Join(r.comments(), "\n"); !strings.Contains(all, "the comment was edited") {
			t.Errorf("bob is not told why:\n%s", all)
		}
		withdrawn := r.says("bob", r.approve(digestA))
		r.want("A new comment counts.", digestA, "@bob")
		r.as("bob", http.MethodDelete, fmt.Sprintf("/issues/comments/%d", withdrawn), nil, nil)
		r.want("A deleted comment does not count.", digestA, "")
	})

	t.Run("Authors", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "authors")
		r.push("bob", "b.yaml", "b: 1\n", nil)
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		r.want("Bob is the author of one of the commits.", digestA, "")
		r.may("carol", "write")
		r.says("carol", r.approve(digestA))
		r.want("Carol is the author of none of the commits.", digestA, "@carol")
		tick()
		r.push("alice", "c.yaml", "c: 1\n", map[string]string{"name": "Bob", "email": "second@example.org"})
		r.want("", digestA, "")
		r.says("carol", r.approve(digestA))
		r.want("The unknown address of an author may belong to carol.", digestA, "")
		if all := strings.Join(r.comments(), "\n"); !strings.Contains(all, "the forge has no user for second@example.org") {
			t.Errorf("carol is not told why:\n%s", all)
		}
		r.rules.ByAuthor = true
		r.want("With ByAuthor, an author may approve.", digestA, "@carol")
		r.rules = forge.Rules{Approvers: []string{"dora"}, ByAuthor: true}
		r.want("Carol is not in the list of approvers.", digestA, "")
		r.rules.Approvers = []string{"@Carol"}
		r.want("Names of approvers are not case-sensitive.", digestA, "@carol")
	})

	t.Run("Renamed", func(t *testing.T) {
		erin, mallory := g.User(t, "erin", "all"), g.User(t, "mallory", "all")
		all := map[string]string{"alice": tokens["alice"], "erin": erin, "mallory": mallory}
		r := newReviewed(t, g, all, "renamed")
		r.may("erin", "write")
		r.may("mallory", "write")
		var is struct{ ID int64 }
		g.Call(t, http.MethodGet, "/users/erin", nil, &is)
		r.rules.Approvers = []string{"erin"}
		r.want("", digestA, "")
		running := r.previews(g.Token)
		approvers := func(p *forge.Previews) (names []string) {
			t.Helper()
			given, err := p.Approvals(t.Context(), report.Combine([]report.Report{asked(digestA)}))
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range given[asked(digestA).Sync] {
				names = append(names, a.By)
			}
			return names
		}
		approvers(running) // it finds out who erin is
		for _, names := range [][]string{{"erin", "retired"}, {"mallory", "erin"}} {
			g.Call(t, http.MethodPost, "/admin/users/"+names[0]+"/rename", map[string]string{"new_username": names[1]}, nil)
		}
		r.says("mallory", r.approve(digestA))
		if got := approvers(running); len(got) > 0 {
			t.Errorf("A user who took the name of an approver may not approve: %q", got)
		}
		r.rules.Approvers = []string{fmt.Sprintf("id:%d", is.ID)}
		if got := approvers(r.previews(g.Token)); len(got) > 0 {
			t.Errorf("An ID is that of one user, also after a restart: %q", got)
		}
		r.says("erin", r.approve(digestA))
		for _, p := range []*forge.Previews{running, r.previews(g.Token)} {
			if got := approvers(p); !slices.Equal(got, []string{"@retired"}) {
				t.Errorf("The approver has another name now: %q", got)
			}
		}
	})

	t.Run("Reviews", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "reviews")
		review := func(user, event string) {
			t.Helper()
			r.as(user, http.MethodPost, "/pulls/1/reviews", map[string]string{"event": event, "body": "reviewed"}, nil)
		}
		review("bob", "APPROVED")
		tick()
		r.rules.Reviews = true
		r.want("A review from before the digest was posted does not count.", digestA, "")
		review("carol", "APPROVED")
		r.want("A review by a reader does not count.", digestA, "")
		review("bob", "APPROVED")
		r.rules.Reviews = false
		r.want("A review does not count if the rules do not accept reviews.", digestA, "")
		r.rules.Reviews = true
		r.want("A review from when the comment showed another digest does not count.", digestA, "")
		tick()
		review("bob", "APPROVED")
		r.want("A review of the same head, from after the digest was posted, counts.", digestA, "@bob")
		review("bob", "REQUEST_CHANGES")
		r.want("A later review by bob withdraws his approval.", digestA, "")
		tick()
		review("bob", "APPROVED")
		r.want("A later approving review counts again.", digestA, "@bob")
		r.want("A review counts while the head needs the same digest.", digestA, "@bob")
		r.want("A review does not count for another digest, even if the head is the same.", digestB, "")
		tick()
		review("bob", "APPROVED")
		r.want("A new review counts for the new digest.", digestB, "@bob")
		tick()
		r.push("alice", "a.yaml", "a: 4\n", nil)
		r.want("", digestA, "")
		r.want("A review of another commit does not count.", digestA, "")
	})

	t.Run("Rights", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "rights")
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		if _, err := r.previews(tokens["alice"]).Approvals(t.Context(), report.Combine([]report.Report{asked(digestA)})); err == nil || !strings.Contains(err.Error(), "administration of the repository") {
			t.Errorf("the error does not say which right is missing: %v", err)
		}
	})

	t.Run("OtherCommands", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "others")
		r.want("", digestA, "")
		r.says("bob", "/headgate preview\n/headgate explain buckets\n/headgate explain <script>\n/headgate dance")
		for _, asks := range []bool{true, false} {
			if heard, err := r.previews(g.Token).Heard(t.Context(), asks); err != nil || !heard {
				t.Fatalf("Heard: %t, %v", heard, err)
			}
		}
		r.want("", digestA, "")
		all := r.comments()
		answer := all[len(all)-1]
		for _, want := range []string{"Previewed again: ⛔ Blocked", "`buckets.example.org` is active after the merge", "is called `<script>`", "Headgate knows"} {
			if !strings.Contains(answer, want) {
				t.Errorf("the answer lacks %q:\n%s", want, answer)
			}
		}
		if heard, err := r.previews(g.Token).Heard(t.Context(), false); err != nil || heard {
			t.Errorf("it is answered, and Heard says %t, %v", heard, err)
		}
		r.says("carol", "/headgate preview")
		if heard, err := r.previews(g.Token).Heard(t.Context(), false); err != nil || heard {
			t.Errorf("a reader has it preview again: %t, %v", heard, err)
		}
	})
}

// merge merges the pull request with a method of the forge, and returns the newest commit of the target branch.
func (r *reviewed) merge(how string) string {
	r.Helper()
	var is struct {
		Merged bool
	}
	for began := time.Now(); !is.Merged; time.Sleep(50 * time.Millisecond) {
		_ = r.gitea.TryCall(http.MethodPost, r.path(fmt.Sprintf("/pulls/%d/merge", r.number)), map[string]string{"Do": how}, nil) // Gitea first checks whether the merge is possible
		r.gitea.Call(r.T, http.MethodGet, r.path(fmt.Sprintf("/pulls/%d", r.number)), nil, &is)
		if time.Since(began) > fixtures.Patience {
			r.Fatalf("gitea does not merge by %s", how)
		}
	}
	return r.tip()
}

func (r *reviewed) tip() string {
	r.Helper()
	var is struct{ Commit struct{ ID string } }
	r.gitea.Call(r.T, http.MethodGet, r.path("/branches/main"), nil, &is)
	return is.Commit.ID
}

// passes returns the approvals that a pass over a commit finds, and the approvers. Each pass is a new process.
func (r *reviewed) passes(commit, branch string) []string {
	r.Helper()
	m := &forge.Merges{Pulls: r.previews(r.gitea.Token).Pulls, Rules: r.rules, Branch: func(context.Context) (string, error) { return branch, nil }}
	all, err := m.Approvals(r.Context(), commit)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for place, given := range all {
		for _, a := range given {
			got = append(got, fmt.Sprintf("%s %s: %s", a.By, place, strings.Join(a.Digests, " ")))
		}
	}
	slices.Sort(got)
	return got
}

// The pass after the merge reads the approval from the forge and checks it again: an approver who has lost the permission, or
// committed after the approval, does not open a gate.
//
//test:long
func TestMergesOnGitea(t *testing.T) {
	g := fixtures.StartGitea(t)
	tokens := map[string]string{g.Owner: g.Token}
	for _, user := range []string{"alice", "bob", "carol"} {
		tokens[user] = g.User(t, user, "all")
	}
	want := func(t *testing.T, reason string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot %q, want %q", reason, got, want)
		}
	}
	ofA := claims.Into("main", []string{digestA})
	byBob := "@bob Comment: " + ofA + " " + digestA
	for _, how := range []string{"merge", "squash", "rebase"} {
		t.Run(how, func(t *testing.T) {
			r := newReviewed(t, g, tokens, how)
			r.want("", digestA, "")
			r.says("bob", r.approve(digestA))
			r.says("alice", r.approve(digestB))
			commit := r.merge(how)
			want(t, "The commit was merged from the pull request.", r.passes(commit, "main"), byBob)
			want(t, "An approval does not count for a pass over another branch.", r.passes(commit, "release"))
			want(t, "An approval does not count for a pass that follows no branch.", r.passes(commit, ""))
			next := g.Commit(t, how, "next.yaml", "a: 1\n")
			want(t, "A cluster may skip the merge commit and apply a later one.", r.passes(next, "main"), byBob)
			r.may("bob", "read")
			want(t, "Bob has lost write access.", r.passes(commit, "main"))
			r.may("bob", "write")
			r.rules.Approvers = []string{"carol"}
			want(t, "Bob is no longer in the list of approvers.", r.passes(commit, "main"))
		})
	}

	t.Run("OlderHead", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "older")
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		r.want("", digestA, "@bob")
		tick()
		r.push("alice", "a.yaml", "a: 9\n", nil)
		r.want("", digestA, "")
		want(t, "The approval was given for another head than the merged one.", r.passes(r.merge("merge"), "main"))
	})

	t.Run("Retargeted", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "retargeted")
		g.Call(t, http.MethodPost, r.path("/branches"), map[string]string{"new_branch_name": "staging", "old_branch_name": "main"}, nil)
		into := func(branch string) {
			t.Helper()
			g.Call(t, http.MethodPatch, r.path("/pulls/1"), map[string]string{"base": branch}, nil)
		}
		into("staging")
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		r.want("The approval counts for the target that bob saw.", digestA, "@bob")
		into("main")
		r.want("The pull request has another target now.", digestA, "")
		want(t, "Bob approved what goes into staging.", r.passes(r.merge("merge"), "main"))
	})

	t.Run("PushedAfterMerge", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "after")
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		commit := r.merge("merge")
		tick()
		r.push("alice", "a.yaml", "a: 5\n", nil)
		want(t, "A push to the branch after the merge does not matter.", r.passes(commit, "main"), byBob)
	})

	t.Run("NotMerged", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "notmerged")
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		want(t, "An approval does not count while the pull request is open.", r.passes(r.tip(), "main"))
	})

	t.Run("Covers", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "covers")
		each := []string{digestA, digestB}
		whole := claims.Into("main", each)
		result := asked(claims.DigestOf(each))
		result.Approval.Each = each
		if err := r.previews(g.Token).Publish(t.Context(), report.Combine([]report.Report{result})); err != nil {
			t.Fatal(err)
		}
		r.says("bob", r.approve(each...))
		r.says("alice", "<!-- headgate approves "+whole+": "+strings.Repeat("c3", 16)+" -->")
		commit := r.merge("merge")
		want(t, "The approval contains the digests of the single syncs, because a cluster may hold only some of them.", r.passes(commit, "main"), "@bob Comment: "+strings.Join(append([]string{whole}, each...), " "))
	})

	t.Run("Reviews", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "mergedreview")
		r.rules.Reviews = true
		r.want("", digestA, "")
		tick()
		r.as("bob", http.MethodPost, "/pulls/1/reviews", map[string]string{"event": "APPROVED", "body": "reviewed"}, nil)
		r.want("", digestA, "@bob")
		r.want("The approval is recorded once.", digestA, "@bob")
		commit := r.merge("merge")
		want(t, "Headgate recorded the digest that the review approved.", r.passes(commit, "main"), "@bob Review: "+ofA+" "+digestA)
		var all []struct {
			ID   int64
			Body string
		}
		g.Call(t, http.MethodGet, r.path("/issues/1/comments?limit=50"), nil, &all)
		records := 0
		for _, c := range all {
			if !strings.Contains(c.Body, "/review/") {
				continue
			}
			records++
			r.says("alice", strings.ReplaceAll(c.Body, ofA, claims.Into("main", []string{digestB})))
			want(t, "A copy of the record in a comment by another user does not count.", r.passes(commit, "main"), "@bob Review: "+ofA+" "+digestA)
			tick()
			g.Call(t, http.MethodPatch, r.path(fmt.Sprintf("/issues/comments/%d", c.ID)), map[string]string{"body": strings.ReplaceAll(c.Body, ofA, claims.Into("main", []string{digestB}))}, nil)
			want(t, "A record that another user edited does not count.", r.passes(commit, "main"))
		}
		if records != 1 {
			t.Errorf("%d records", records)
		}
	})

	t.Run("Outage", func(t *testing.T) {
		r := newReviewed(t, g, tokens, "outage")
		r.want("", digestA, "")
		r.says("bob", r.approve(digestA))
		commit := r.merge("merge")
		m := &forge.Merges{Pulls: r.previews(g.Token).Pulls, Branch: func(context.Context) (string, error) { return "main", nil }}
		g.Stop(t)
		if all, err := m.Approvals(t.Context(), commit); err == nil || all != nil {
			t.Errorf("without a forge: %v, %v", all, err)
		}
		g.Start(t)
		if all, err := m.Approvals(t.Context(), commit); err != nil || len(all.All()) != 1 {
			t.Errorf("a failure is remembered: %v, %v", all, err)
		}
	})
}
