package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/report"
)

// KindGitHub is GitHub and GitHub Enterprise.
const KindGitHub Kind = "github"

var gitHubForge = Forge{
	Kind:     KindGitHub,
	Name:     "GitHub",
	CIFile:   ".github/workflows/headgate.yaml",
	Annotate: report.WorkflowCommands,
	addresses: addresses{
		public:    func(host string) bool { return host == "github.com" || strings.HasSuffix(host, ".ghe.com") },
		aliases:   map[string]alias{"www.github.com": {host: "github.com"}, "ssh.github.com": {host: "github.com"}},
		apiPath:   "/api/v3/", // for GitHub Enterprise Server
		publicAPI: "/",
	},
	pipeline:      pipeline{name: "GitHub", token: "GITHUB_TOKEN", read: func(env func(string) string) (Workflow, bool) { return actionsWorkflow(env, runID) }}, //nolint:gosec // the name of a variable
	webhook:       webhook{header: "X-GitHub-Event", proves: hubProves("X-Hub-Signature-256"), event: hubEvent("X-GitHub-Event")},
	dialect:       report.Dialect{MaxBytes: 65_536},
	authorization: func(token string) string { return "token " + token },
	appToken:      gitHubAppToken,
	appUser:       "x-access-token",
	filePath:      hashLine("/blob/"),
	commentPath:   "/pull/%[1]d#issuecomment-%[2]d",
	open:          newGitHub,
	mergeRef:      "refs/pull/%d/merge",
}

// gitHub is a client of GitHub.
type gitHub struct {
	at     Repository
	client *github.Client // shared by all requests, because it remembers when the rate limit ends
}

func newGitHub(at Repository, api string, over *http.Client) (client, error) {
	c, err := github.NewClient(github.WithHTTPClient(over), github.WithURLs(&api, nil), github.WithUserAgent("headgate"))
	if err != nil {
		return nil, fmt.Errorf("GitHub: %w", err)
	}
	return gitHub{at: at, client: c}, nil
}

func (g gitHub) list(ctx context.Context, commit string) (map[string]Status, error) {
	current := map[string]Status{}
	// The combined status has only the newest status of each context, so one page is nearly always enough.
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.Repositories.GetCombinedStatus(ctx, g.at.Owner, g.at.Name, commit, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		if got == nil { // the answer was null
			break
		}
		for _, s := range got.Statuses {
			current[s.GetContext()] = Status{
				Commit: commit, Context: s.GetContext(), State: report.State(s.GetState()),
				Description: s.GetDescription(), TargetURL: s.GetTargetURL(),
			}
		}
		page = resp.NextPage
	}
	return current, nil
}

func (g gitHub) keep(s Status) Status {
	s.Description, s.Into, s.Pull = s.shortened(140), "", 0
	return s
}

func (g gitHub) create(ctx context.Context, s Status) error {
	status := github.RepoStatus{State: new(string(s.State)), Context: &s.Context, Description: &s.Description}
	if s.TargetURL != "" {
		status.TargetURL = &s.TargetURL
	}
	if _, resp, err := g.client.Repositories.CreateStatus(ctx, g.at.Owner, g.at.Name, s.Commit, status); err != nil {
		return g.trouble(resp, err)
	}
	return nil
}

func (g gitHub) trouble(resp *github.Response, err error) error {
	return g.refused(answer{right: gitHubRight}, resp, err)
}

// refused returns the error for a failed request.
func (g gitHub) refused(a answer, resp *github.Response, err error) error {
	now := time.Now()
	if limit, ok := errors.AsType[*github.RateLimitError](err); ok {
		wait := min(max(0, limit.Rate.Reset.Sub(now)), maxWait)
		return &Later{After: wait, Err: errors.New("GitHub: the token's requests of this hour are used up")}
	}
	if limit, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		wait := time.Minute // GitHub's recommendation if it returns no time
		if limit.RetryAfter != nil {
			wait = min(max(0, *limit.RetryAfter), maxWait)
		}
		return &Later{After: wait, Err: errors.New("GitHub: too many requests at once")}
	}
	a.forge, a.of, a.err = "GitHub", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
	}
	if refused, ok := errors.AsType[*github.ErrorResponse](err); ok {
		a.resp = refused.Response
	}
	if a.resp != nil && strings.HasPrefix(a.resp.Header.Get("X-Github-Sso"), "required") {
		a.right = "to be authorised for the organisation's single sign-on"
	}
	return a.trouble(now)
}

func (g gitHub) pull(ctx context.Context, number int) (Pull, error) {
	got, resp, err := g.client.PullRequests.Get(ctx, g.at.Owner, g.at.Name, number)
	if err != nil {
		return Pull{}, g.reading(resp, err)
	}
	return gitHubPull(got), nil
}

func gitHubPull(is *github.PullRequest) Pull {
	from, into := is.GetHead().GetRepo().GetID(), is.GetBase().GetRepo().GetID()
	return Pull{Number: is.GetNumber(), Head: is.GetHead().GetSHA(), Target: is.GetBase().GetRef(), Fork: from == 0 || from != into, Author: authorOf(is.GetUser().GetID()), Updated: is.GetUpdatedAt().Time}
}

func (g gitHub) open(ctx context.Context) ([]Pull, error) {
	var all []Pull
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.PullRequests.List(ctx, g.at.Owner, g.at.Name, &github.PullRequestListOptions{
			State: "open", Sort: "created", Direction: "desc", ListOptions: github.ListOptions{Page: page, PerPage: 100},
		})
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, is := range got {
			all = append(all, gitHubPull(is))
		}
		page = resp.NextPage
	}
	return all, nil
}

// queued lists the branches of the merge queue. A branch has the commits of the pull request in its name and of those ahead
// of it.
func (g gitHub) queued(ctx context.Context) ([]Pull, error) {
	got, resp, err := g.client.Git.ListMatchingRefs(ctx, g.at.Owner, g.at.Name, "heads/gh-readonly-queue/")
	if resp != nil && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusConflict) {
		return nil, nil // the token may not read the content, or there is none
	}
	if err != nil {
		return nil, g.refused(answer{doing: "read the branches", right: "the permission “Contents: read”"}, resp, err)
	}
	var all []Pull
	for _, ref := range got {
		if m := queuedBranch.FindStringSubmatch(ref.GetRef()); m != nil {
			all = append(all, Pull{Number: pullNumber(m[2]), Head: ref.GetObject().GetSHA(), Target: m[1], Queued: true})
		}
	}
	return all, nil
}

func (g gitHub) reading(resp *github.Response, err error) error {
	return g.refused(answer{doing: "read pull requests", right: "the permission “Pull requests: read and write”"}, resp, err)
}

func (g gitHub) self(ctx context.Context) (string, error) {
	user, resp, err := g.client.Users.Get(ctx, "")
	if err != nil && resp != nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound) {
		if _, limited := errors.AsType[*github.RateLimitError](err); !limited {
			return g.bot(ctx), nil // the token of a workflow, or of another App, belongs to no user
		}
	}
	if err != nil {
		return "", g.refused(answer{doing: "read who it is"}, resp, err)
	}
	return user.GetLogin(), nil
}

// bot returns the user name of an App. Only GraphQL returns it for an App's token. If that fails, bot assumes the App
// of GitHub Actions.
func (g gitHub) bot(ctx context.Context) string {
	var decoded struct {
		Data struct{ Viewer struct{ Login string } }
	}
	_, err := g.graphQL(ctx, "{viewer{login}}", nil, &decoded)
	login := strings.TrimSuffix(decoded.Data.Viewer.Login, "[bot]")
	if err != nil || login == "" {
		login = "github-actions"
	}
	return login + "[bot]"
}

func (g gitHub) graphQL(ctx context.Context, query string, variables map[string]string, into any) (*github.Response, error) {
	at := g.client.BaseURL()
	if server, ok := strings.CutSuffix(at, "v3/"); ok {
		at = server
	}
	req, err := g.client.NewRequest(ctx, http.MethodPost, at+"graphql", map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}
	return g.client.Do(req, into)
}

// minimize folds a comment away as outdated.
func (g gitHub) minimize(ctx context.Context, c comment) error {
	var decoded struct {
		Errors []struct{ Message string }
	}
	const query = "mutation($id: ID!) {minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {minimizedComment {isMinimized}}}"
	resp, err := g.graphQL(ctx, query, map[string]string{"id": c.node}, &decoded)
	if err != nil {
		return g.commenting(resp, err)
	}
	if len(decoded.Errors) > 0 {
		return fmt.Errorf("GitHub: cannot minimize a comment: %s", plain(decoded.Errors[0].Message))
	}
	return nil
}

func (g gitHub) comments(ctx context.Context, number int, since time.Time) ([]comment, error) {
	var all []comment
	var after *time.Time
	if !since.IsZero() {
		after = &since
	}
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.Issues.ListComments(ctx, g.at.Owner, g.at.Name, number, &github.IssueListCommentsOptions{Since: after, ListOptions: github.ListOptions{Page: page, PerPage: 100}})
		if err != nil {
			return nil, g.commenting(resp, err)
		}
		for _, c := range got {
			all = append(all, comment{
				id: c.GetID(), author: c.GetUser().GetLogin(), of: c.GetUser().GetID(), body: c.GetBody(), bot: c.GetUser().GetType() == "Bot",
				created: c.GetCreatedAt().Time, updated: c.GetUpdatedAt().Time, node: c.GetNodeID(),
			})
		}
		if page = resp.NextPage; page != 0 && pages == maxPages-1 {
			return all, errTooManyComments
		}
	}
	return all, nil
}

func (g gitHub) mayWrite(ctx context.Context, who comment) (bool, error) {
	got, resp, err := g.client.Repositories.GetPermissionLevel(ctx, g.at.Owner, g.at.Name, who.author)
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return false, nil // the user was deleted
	}
	if err != nil {
		return false, g.refused(answer{doing: "read who may write to the repository", right: "the permission “Metadata: read”"}, resp, err)
	}
	return got.GetPermission() == "admin" || got.GetPermission() == "write", nil
}

func (g gitHub) authors(ctx context.Context, number int) (authors, error) {
	is, resp, err := g.client.PullRequests.Get(ctx, g.at.Owner, g.at.Name, number)
	if err != nil {
		return authors{}, g.reading(resp, err)
	}
	all := authors{known: []user{gitHubUser(is.GetUser())}, userOf: gitHubUserOf}
	for page, pages := 1, 0; page != 0; pages++ {
		if pages == maxPages {
			return authors{}, errTooManyCommits
		}
		got, resp, err := g.client.PullRequests.ListCommits(ctx, g.at.Owner, g.at.Name, number, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return authors{}, g.reading(resp, err)
		}
		for _, c := range got {
			all.add(c.GetSHA(), gitHubUser(c.GetAuthor()), c.GetCommit().GetAuthor().GetEmail())
			all.add(c.GetSHA(), gitHubUser(c.GetCommitter()), c.GetCommit().GetCommitter().GetEmail())
			all.coauthors(c.GetSHA(), c.GetCommit().GetMessage())
		}
		all.commits += len(got)
		page = resp.NextPage
	}
	if all.commits >= 250 { // GitHub's maximum
		return authors{}, errTooManyCommits
	}
	return all, nil
}

func gitHubUser(u *github.User) user { return user{id: u.GetID(), name: u.GetLogin()} }

var gitHubAddress = regexp.MustCompile(`^([0-9]+)\+([A-Za-z0-9-]+)@users\.noreply\.github\.com$`)

// gitHubUserOf returns the user to whom GitHub gave an address. Older addresses have no ID, and their user may have another name now.
func gitHubUserOf(address string) (user, bool) {
	m := gitHubAddress.FindStringSubmatch(address)
	if m == nil {
		return user{}, false
	}
	id, err := strconv.ParseInt(m[1], 10, 64)
	return user{id: id, name: m[2]}, err == nil && id > 0
}

func (g gitHub) verdicts(ctx context.Context, commit string) ([]pastStatus, error) {
	var all []pastStatus
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.Repositories.ListStatuses(ctx, g.at.Owner, g.at.Name, commit, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			all = append(all, pastStatus{s.GetContext(), report.State(s.GetState()), s.GetCreatedAt().Time, s.GetCreator().GetLogin()})
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitHub) reviews(ctx context.Context, number int) ([]review, error) {
	var all []review
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.PullRequests.ListReviews(ctx, g.at.Owner, g.at.Name, number, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, r := range got {
			by := comment{id: r.GetID(), author: r.GetUser().GetLogin(), of: r.GetUser().GetID(), bot: r.GetUser().GetType() == "Bot", created: r.GetSubmittedAt().Time}
			all = append(all, review{by, r.GetCommitID(), r.GetState() == "APPROVED", r.GetState() == "COMMENTED" || r.GetState() == "PENDING"})
		}
		if page = resp.NextPage; page != 0 && pages == maxPages-1 { // the newest reviews may be on later pages
			return nil, errTooManyReviews
		}
	}
	return all, nil
}

func (g gitHub) history(ctx context.Context, commit string, since time.Time) ([]string, error) {
	got, resp, err := g.client.Repositories.ListCommits(ctx, g.at.Owner, g.at.Name, &github.CommitsListOptions{SHA: commit, Since: since, ListOptions: github.ListOptions{PerPage: maxHistory}})
	if err != nil {
		return nil, g.reading(resp, err)
	}
	var all []string
	for _, c := range got {
		all = append(all, c.GetSHA())
	}
	return all, nil
}

func (g gitHub) merged(ctx context.Context, commit string) ([]Pull, error) {
	got, resp, err := g.client.PullRequests.ListPullRequestsWithCommit(ctx, g.at.Owner, g.at.Name, commit, &github.ListOptions{PerPage: 100})
	if resp != nil && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusUnprocessableEntity) {
		return nil, nil // GitHub does not know the commit
	}
	if err != nil {
		return nil, g.reading(resp, err)
	}
	var all []Pull
	for _, is := range got {
		if is.GetMergedAt() != (github.Timestamp{}) {
			all = append(all, gitHubPull(is))
		}
	}
	return all, nil
}

func (g gitHub) comment(ctx context.Context, number int, body string) error {
	if _, resp, err := g.client.Issues.CreateComment(ctx, g.at.Owner, g.at.Name, number, &github.IssueComment{Body: &body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitHub) edit(ctx context.Context, _ int, c comment, body string) error {
	if _, resp, err := g.client.Issues.EditComment(ctx, g.at.Owner, g.at.Name, c.id, &github.IssueComment{Body: &body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitHub) remove(ctx context.Context, _ int, c comment) error {
	if resp, err := g.client.Issues.DeleteComment(ctx, g.at.Owner, g.at.Name, c.id); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitHub) commenting(resp *github.Response, err error) error {
	return g.refused(answer{doing: "comment on pull requests", right: "the permission “Pull requests: read and write”"}, resp, err)
}

var gitHubPullRef = regexp.MustCompile(`^refs/pull/(\d+)/`)

// The variables with the last part of a run's URL, for GitHub and for forges that imitate it.
const (
	runID     = "GITHUB_RUN_ID"
	runNumber = "GITHUB_RUN_NUMBER"
)

// actionsWorkflow reads the environment of a workflow of GitHub, or of a forge that imitates it.
func actionsWorkflow(env func(string) string, run string) (Workflow, bool) {
	w := Workflow{Server: env("GITHUB_SERVER_URL"), Name: env("GITHUB_REPOSITORY"), Base: remoteBranch(env("GITHUB_BASE_REF")), Target: env("GITHUB_BASE_REF"), Token: env("GITHUB_TOKEN"), Summary: env("GITHUB_STEP_SUMMARY")}
	if id := env(run); id != "" {
		w.Run = w.Server + "/" + w.Name + "/actions/runs/" + id
	}
	if m := gitHubPullRef.FindStringSubmatch(env("GITHUB_REF")); m != nil {
		w.Pull = pullNumber(m[1])
		w.Head, w.Fork = headOf(env("GITHUB_EVENT_PATH"))
	}
	switch env("GITHUB_EVENT_NAME") {
	case "merge_group":
		w.queue(env("GITHUB_EVENT_PATH"))
	case "pull_request":
		w.close(env("GITHUB_EVENT_PATH"))
	}
	return w, env("GITHUB_ACTIONS") == "true"
}

// queuedBranch matches the branch of a merge queue, which names the last pull request in it.
var queuedBranch = regexp.MustCompile(`^(?:refs/heads/)?gh-readonly-queue/(.+)/pr-(\d+)-[0-9a-f]+$`)

// queue reads the event of a merge queue. It changes nothing for an unreadable file.
func (w *Workflow) queue(file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	var event struct {
		Group struct {
			HeadSHA string `json:"head_sha"`
			HeadRef string `json:"head_ref"`
			BaseSHA string `json:"base_sha"`
			BaseRef string `json:"base_ref"`
		} `json:"merge_group"`
	}
	if err := json.Unmarshal(data, &event); err != nil || !isCommit(event.Group.HeadSHA) {
		return
	}
	w.Queued, w.Head, w.Base, w.Target = true, event.Group.HeadSHA, event.Group.BaseSHA, event.Group.BaseRef
	if m := queuedBranch.FindStringSubmatch(event.Group.HeadRef); m != nil {
		w.Pull = pullNumber(m[2])
	}
}

// close reads the event of a pull request that was closed. After a merge, the ref of the run is the target.
func (w *Workflow) close(file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	var event struct {
		Action string
		Number int
	}
	if err := json.Unmarshal(data, &event); err == nil && event.Action == "closed" && event.Number > 0 {
		w.Closed, w.Pull = true, event.Number
	}
}

// headOf returns the head of the pull request in an event file, and reports whether it is in another repository. It
// returns nothing for an unreadable file.
func headOf(file string) (commit string, fork bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	type side struct {
		SHA  string
		Repo struct{ ID int64 }
	}
	var event struct {
		Pull *struct{ Head, Base side } `json:"pull_request"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Pull == nil {
		return "", false
	}
	from, into := event.Pull.Head.Repo.ID, event.Pull.Base.Repo.ID
	return event.Pull.Head.SHA, into != 0 && from != into // from is 0 if the fork was deleted
}

// gitHubAppToken returns a function that gets the tokens of an App. They last an hour; the function creates a new one
// before that.
func gitHubAppToken(a App, of Repository, api string, transport http.RoundTripper) func(context.Context) (string, error) {
	var (
		mu    sync.Mutex
		known string // the private key of made
		made  *ghinstallation.Transport
	)
	return func(ctx context.Context) (string, error) {
		key, err := a.Key(ctx)
		if err != nil {
			return "", err
		}
		mu.Lock()
		defer mu.Unlock()
		if made == nil || key != known {
			if made, err = ghinstallation.New(bounded{cmp.Or(transport, network.Default)}, a.ID, a.Installation, []byte(key)); err != nil {
				made = nil
				return "", errors.New("GitHub: the private key of the App cannot be read: use the PEM file from GitHub") // err may quote it
			}
			made.BaseURL, known = api, key
		}
		token, err := made.Token(ctx)
		if refused, ok := errors.AsType[*ghinstallation.HTTPError](err); ok {
			return "", gitHubAppRefused(a, of, refused)
		}
		return token, err
	}
}

// gitHubAppRefused returns the error for a refused request for an App's token.
func gitHubAppRefused(a App, of Repository, e *ghinstallation.HTTPError) error {
	is := answer{forge: "GitHub", of: of.String(), doing: "make a token of the App", right: "to be installed there", resp: e.Response, err: e.RootCause}
	if e.Response == nil {
		return is.trouble(time.Now())
	}
	_ = e.Response.Body.Close()
	switch e.Response.StatusCode {
	case http.StatusUnauthorized:
		return &Refusal{fmt.Errorf("GitHub: the App %d is not accepted (401): check its ID, its private key and the clock of this machine", a.ID)}
	case http.StatusNotFound:
		return fmt.Errorf("GitHub: the App %d has no installation %d (404)", a.ID, a.Installation)
	}
	return is.trouble(time.Now())
}

func (g gitHub) userID(ctx context.Context, name string) (int64, error) {
	user, resp, err := g.client.Users.Get(ctx, name)
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, g.refused(answer{doing: "read the approver " + name}, resp, err)
	}
	return user.GetID(), nil
}

const gitHubRight = "the permission “Commit statuses: read and write” (a classic token: repo:status)"

func (g gitHub) token(ctx context.Context) (preflight.Token, error) {
	found := preflight.Token{Forge: "GitHub", Right: gitHubRight, Enough: []string{"repo", "repo:status"}}
	repo, resp, err := g.client.Repositories.Get(ctx, g.at.Owner, g.at.Name)
	if err != nil {
		return found, g.refused(answer{doing: "read the repository", right: gitHubRight}, resp, err)
	}
	if repo == nil {
		return found, errors.New("GitHub: cannot understand the answer")
	}
	if !repo.GetPrivate() {
		found.Enough = append(found.Enough, "public_repo")
	}
	if header := resp.Header.Values("X-Oauth-Scopes"); len(header) > 0 { // only classic tokens have scopes
		found.Scopes = wordsOf(strings.Join(header, ","))
	}
	found.MayWrite = repo.GetPermissions().GetPush()
	found.Shown = found.Scopes != nil || found.MayWrite // the permissions of other tokens are those of their user, or missing
	found.Expiry = preflight.Expiry{Of: "the token of GitHub", Hidden: "tokens without an expiry, and those of Apps, show none"}
	if at := resp.TokenExpiration; !at.IsZero() {
		found.Expiry = tokenExpiry("GitHub", at.Time)
	}
	return found, nil
}

// protection reads both kinds of protection: rulesets, and protected branches. Every user who may read the repository may read them.
func (g gitHub) protection(ctx context.Context, branch string) (preflight.Protection, error) {
	if branch == "" {
		repo, resp, err := g.client.Repositories.Get(ctx, g.at.Owner, g.at.Name)
		if err != nil {
			return preflight.Protection{}, g.refused(answer{doing: "read the repository", right: gitHubRight}, resp, err)
		}
		branch = repo.GetDefaultBranch()
	}
	found := preflight.Protection{Branch: branch}
	doing := answer{doing: "read the protection of the branch " + branch, right: "the permission “Contents: read”"}
	of, resp, err := g.client.Repositories.GetBranch(ctx, g.at.Owner, g.at.Name, branch, 1)
	if err != nil {
		return found, g.refused(doing, resp, err)
	}
	if checks := of.GetProtection().GetRequiredStatusChecks(); checks != nil {
		for _, c := range checks.GetChecks() {
			found.Required = append(found.Required, c.Context)
		}
		found.Required = append(found.Required, checks.GetContexts()...)
	}
	rules, resp, err := g.client.Repositories.ListRulesForBranch(ctx, g.at.Owner, g.at.Name, branch, &github.ListOptions{PerPage: 100})
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusNotFound { // an older GitHub Enterprise Server has no rulesets
			return unique(found), nil
		}
		return found, g.refused(doing, resp, err)
	}
	for _, rule := range rules.RequiredStatusChecks {
		for _, c := range rule.Parameters.RequiredStatusChecks {
			found.Required = append(found.Required, c.Context)
		}
	}
	return unique(found), nil
}
