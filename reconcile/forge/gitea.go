package forge

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/report"
)

// KindGitea is Gitea and Forgejo.
const KindGitea Kind = "gitea"

var giteaForge = Forge{
	Kind:   KindGitea,
	Name:   "Gitea",
	CIFile: ".gitea/workflows/headgate.yaml",
	Also:   "Forgejo",
	addresses: addresses{
		public:  func(host string) bool { return host == "codeberg.org" || host == "gitea.com" },
		labels:  []string{"gitea", "forgejo"},
		apiPath: "/",
	},
	pipeline:      pipeline{name: "Gitea", also: "Forgejo", token: "GITEA_TOKEN", read: giteaActions},
	webhook:       webhook{header: "X-Gitea-Event", proves: giteaProves, event: hubEvent("X-Gitea-Event")},
	dialect:       report.Dialect{MaxBytes: 65_536},
	authorization: func(token string) string { return "token " + token },
	filePath:      hashLine("/src/commit/"),
	commentPath:   "/pulls/%[1]d#issuecomment-%[2]d",
	open: func(at Repository, api string, over *http.Client) (client, error) {
		return gitea{at: at, api: api, client: over}, nil
	},
}

// giteaActions reads the environment of a workflow of Gitea or Forgejo, which also has GitHub's variables.
func giteaActions(env func(string) string) (Workflow, bool) {
	w, ok := actionsWorkflow(env, runNumber)
	if w.Run != "" {
		w.Run += "?by_index=1" // without it, Gitea 1.26 and later look for an ID first
	}
	return w, ok && (env("GITEA_ACTIONS") == "true" || env("FORGEJO_ACTIONS") == "true")
}

// gitea is a client of Gitea or Forgejo.
type gitea struct {
	at     Repository
	api    string
	client *http.Client
}

// within returns a client for one request, because the SDK takes its context from the client. It does not request the
// version: some builds return one that the SDK rejects.
func (g gitea) within(ctx context.Context) (*sdk.Client, error) {
	return sdk.NewClient(g.api, sdk.SetGiteaVersion(""), sdk.SetHTTPClient(g.client), sdk.SetContext(ctx), sdk.SetUserAgent("headgate"))
}

func (g gitea) list(ctx context.Context, commit string) (map[string]Status, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	current, newest := map[string]Status{}, map[string]int64{}
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := client.ListStatuses(g.at.Owner, g.at.Name, commit, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			// Statuses are sorted by second, newest first. Within a second, only the ID shows the order.
			if s == nil || s.ID < newest[s.Context] {
				continue
			}
			newest[s.Context] = s.ID
			current[s.Context] = Status{
				Commit: commit, Context: s.Context, State: report.State(s.State),
				Description: s.Description, TargetURL: s.TargetURL,
			}
		}
		page = resp.NextPage
	}
	return current, nil
}

// keep shortens the description: Gitea accepts any length, but shows no more.
func (g gitea) keep(s Status) Status {
	s.Description, s.Into, s.Pull = s.shortened(255), "", 0
	return s
}

func (g gitea) create(ctx context.Context, s Status) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	_, resp, err := client.CreateStatus(g.at.Owner, g.at.Name, s.Commit, sdk.CreateStatusOption{
		State: sdk.StatusState(s.State), Context: s.Context, Description: s.Description, TargetURL: s.TargetURL,
	})
	if err != nil {
		return g.trouble(resp, err)
	}
	return nil
}

func (g gitea) trouble(resp *sdk.Response, err error) error {
	return g.refused(answer{right: giteaRight}, resp, err)
}

// refused returns the error for a failed request.
func (g gitea) refused(a answer, resp *sdk.Response, err error) error {
	a.forge, a.of, a.err = "Gitea", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
	}
	return a.trouble(time.Now())
}

func (g gitea) pull(ctx context.Context, number int) (Pull, error) {
	client, err := g.within(ctx)
	if err != nil {
		return Pull{}, err
	}
	got, resp, err := client.GetPullRequest(g.at.Owner, g.at.Name, int64(number))
	if err != nil {
		return Pull{}, g.reading(resp, err)
	}
	if got == nil || got.Head == nil || got.Base == nil {
		return Pull{}, fmt.Errorf("Gitea: pull request %d has no head or no target", number) //nolint:staticcheck // a name
	}
	return giteaPull(got), nil
}

func giteaPull(is *sdk.PullRequest) Pull {
	from, into := is.Head.RepoID, is.Base.RepoID
	pull := Pull{Number: int(is.Index), Head: is.Head.Sha, Target: is.Base.Ref, Fork: from == 0 || from != into}
	if is.Poster != nil {
		pull.Author = authorOf(is.Poster.ID)
	}
	if is.Updated != nil {
		pull.Updated = *is.Updated
	}
	return pull
}

func (g gitea) open(ctx context.Context) ([]Pull, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	var all []Pull
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := client.ListRepoPullRequests(g.at.Owner, g.at.Name, sdk.ListPullRequestsOptions{State: sdk.StateOpen, ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, is := range got {
			if is != nil && is.Head != nil && is.Base != nil {
				all = append(all, giteaPull(is))
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitea) reading(resp *sdk.Response, err error) error {
	return g.refused(answer{doing: "read pull requests", right: "the scope read:repository"}, resp, err)
}

func (g gitea) self(ctx context.Context) (string, error) {
	client, err := g.within(ctx)
	if err != nil {
		return "", err
	}
	user, resp, err := client.GetMyUserInfo()
	if err != nil {
		return "", g.refused(answer{doing: "read who it is", right: "the scope read:user"}, resp, err)
	}
	return user.UserName, nil
}

func (g gitea) comments(ctx context.Context, number int, since time.Time) ([]comment, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	var all []comment
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := client.ListIssueComments(g.at.Owner, g.at.Name, int64(number), sdk.ListIssueCommentOptions{Since: since, ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.commenting(resp, err)
		}
		for _, c := range got {
			if c != nil && c.Poster != nil {
				all = append(all, comment{id: c.ID, author: c.Poster.UserName, of: c.Poster.ID, body: c.Body, created: c.Created, updated: c.Updated})
			}
		}
		if page = resp.NextPage; page != 0 && pages == maxPages-1 {
			return all, errTooManyComments
		}
	}
	return all, nil
}

func (g gitea) mayWrite(ctx context.Context, who comment) (bool, error) {
	client, err := g.within(ctx)
	if err != nil {
		return false, err
	}
	got, resp, err := client.CollaboratorPermission(g.at.Owner, g.at.Name, who.author)
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return false, nil // the user was deleted
	}
	if err != nil {
		return false, g.refused(answer{doing: "read who may write to the repository", right: "the scope read:repository, and its user administration of the repository"}, resp, err)
	}
	return got != nil && slices.Contains([]sdk.AccessMode{sdk.AccessModeWrite, sdk.AccessModeAdmin, sdk.AccessModeOwner}, got.Permission), nil
}

func (g gitea) authors(ctx context.Context, number int) (authors, error) {
	client, err := g.within(ctx)
	if err != nil {
		return authors{}, err
	}
	is, resp, err := client.GetPullRequest(g.at.Owner, g.at.Name, int64(number))
	if err != nil {
		return authors{}, g.reading(resp, err)
	}
	if is == nil || is.Poster == nil {
		return authors{}, fmt.Errorf("Gitea: pull request %d has no author", number) //nolint:staticcheck // a name
	}
	all := authors{known: []user{giteaUser(is.Poster)}}
	for page, pages := 1, 0; page != 0; pages++ {
		if pages == maxPages {
			return authors{}, errTooManyCommits
		}
		got, resp, err := client.ListPullRequestCommits(g.at.Owner, g.at.Name, int64(number), sdk.ListPullRequestCommitsOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return authors{}, g.reading(resp, err)
		}
		for _, c := range got {
			if c == nil || c.CommitMeta == nil || c.RepoCommit == nil {
				return authors{}, fmt.Errorf("Gitea: cannot read the commits of pull request %d", number) //nolint:staticcheck // a name
			}
			all.add(c.SHA, giteaUser(c.Author), giteaEmail(c.RepoCommit.Author))
			all.add(c.SHA, giteaUser(c.Committer), giteaEmail(c.RepoCommit.Committer))
			all.coauthors(c.SHA, c.RepoCommit.Message)
		}
		page = resp.NextPage
	}
	return all, nil
}

func giteaUser(u *sdk.User) user {
	if u == nil || u.ID <= 0 {
		return user{}
	}
	return user{id: u.ID, name: u.UserName}
}

func giteaEmail(u *sdk.CommitUser) string {
	if u == nil {
		return ""
	}
	return u.Email
}

func (g gitea) verdicts(ctx context.Context, commit string) ([]pastStatus, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	var all []pastStatus
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := client.ListStatuses(g.at.Owner, g.at.Name, commit, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			if s != nil {
				all = append(all, pastStatus{s.Context, report.State(s.State), s.Created, giteaUser(s.Creator).name})
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitea) reviews(ctx context.Context, number int) ([]review, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	var all []review
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := client.ListPullReviews(g.at.Owner, g.at.Name, int64(number), sdk.ListPullReviewsOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, r := range got {
			if r == nil || r.Reviewer == nil { // a review by a team, or only a request
				continue
			}
			by := comment{id: r.ID, author: r.Reviewer.UserName, of: r.Reviewer.ID, created: r.Submitted}
			opinion := r.State == sdk.ReviewStateApproved || r.State == sdk.ReviewStateRequestChanges
			all = append(all, review{by, r.CommitID, r.State == sdk.ReviewStateApproved && !r.Dismissed && !r.Stale, !opinion})
		}
		if page = resp.NextPage; page != 0 && pages == maxPages-1 { // the newest reviews may be on later pages
			return nil, errTooManyReviews
		}
	}
	return all, nil
}

func (g gitea) history(ctx context.Context, commit string, since time.Time) ([]string, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	got, resp, err := client.ListRepoCommits(g.at.Owner, g.at.Name, sdk.ListCommitOptions{SHA: commit, ListOptions: sdk.ListOptions{Page: 1, PageSize: maxHistory}})
	if err != nil {
		return nil, g.reading(resp, err)
	}
	var all []string
	for _, c := range got {
		if c != nil && c.CommitMeta != nil && !c.Created.Before(since) {
			all = append(all, c.SHA)
		}
	}
	return all, nil
}

func (g gitea) merged(ctx context.Context, commit string) ([]Pull, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	is, resp, err := client.GetCommitPullRequest(g.at.Owner, g.at.Name, commit)
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return nil, nil // the commit is not from a pull request
	}
	if err != nil {
		return nil, g.reading(resp, err)
	}
	if is == nil || is.Head == nil || is.Base == nil || !is.HasMerged {
		return nil, nil
	}
	pull := giteaPull(is)
	// The head of the pull request is its branch, which its author may change after the merge. This list has the
	// merged commits, newest first.
	got, resp, err := client.ListPullRequestCommits(g.at.Owner, g.at.Name, is.Index, sdk.ListPullRequestCommitsOptions{ListOptions: sdk.ListOptions{Page: 1, PageSize: 1}})
	if err != nil {
		return nil, g.reading(resp, err)
	}
	if len(got) == 0 || got[0] == nil || got[0].CommitMeta == nil {
		return nil, fmt.Errorf("Gitea: cannot read the commits of pull request %d", is.Index) //nolint:staticcheck // a name
	}
	pull.Head = got[0].SHA
	return []Pull{pull}, nil
}

func (g gitea) comment(ctx context.Context, number int, body string) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	if _, resp, err := client.CreateIssueComment(g.at.Owner, g.at.Name, int64(number), sdk.CreateIssueCommentOption{Body: body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitea) edit(ctx context.Context, _ int, c comment, body string) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	if _, resp, err := client.EditIssueComment(g.at.Owner, g.at.Name, c.id, sdk.EditIssueCommentOption{Body: body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitea) remove(ctx context.Context, _ int, c comment) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	if resp, err := client.DeleteIssueComment(g.at.Owner, g.at.Name, c.id); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitea) commenting(resp *sdk.Response, err error) error {
	return g.refused(answer{doing: "comment on pull requests", right: "the scope write:issue"}, resp, err)
}

// giteaProves checks the signature of the payload. If Gitea sends a form, the signature covers its payload field.
func giteaProves(d delivery, secret string) bool {
	return signed(d.payload, d.header.Get("X-Gitea-Signature"), secret)
}

func (g gitea) userID(ctx context.Context, name string) (int64, error) {
	client, err := g.within(ctx)
	if err != nil {
		return 0, err
	}
	user, resp, err := client.GetUserInfo(name)
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, g.refused(answer{doing: "read the approver " + name, right: "the scope read:user"}, resp, err)
	}
	if user == nil || !strings.EqualFold(user.UserName, name) { // Gitea redirects from a former name
		return 0, nil
	}
	return user.ID, nil
}

const giteaRight = "the scope write:repository, and its user write access to the repository"

func (g gitea) token(ctx context.Context) (preflight.Token, error) {
	found := preflight.Token{
		Forge: "Gitea", Right: giteaRight, Enough: []string{"write:repository", "all"}, Shown: true,
		Expiry: preflight.Expiry{Of: "the token of Gitea", Endless: true},
	}
	client, err := g.within(ctx)
	if err != nil {
		return found, err
	}
	repo, resp, err := client.GetRepo(g.at.Owner, g.at.Name)
	if scopes := giteaScopes(resp, err); scopes != nil {
		found.Scopes = scopes
		return found, nil
	}
	if err != nil {
		return found, g.refused(answer{doing: "read the repository", right: giteaRight}, resp, err)
	}
	found.MayWrite = repo.Permissions != nil && repo.Permissions.Push
	// Gitea has no request for the scopes of a token. It names them when it refuses a request for lack of a scope.
	_, resp, err = client.CheckNotifications()
	found.Scopes = giteaScopes(resp, err)
	return found, nil
}

var giteaScope = regexp.MustCompile(`token scope=([a-z:,]*)`)

// giteaScopes returns the scopes of a token that Gitea names in a refusal; nil if it names none.
func giteaScopes(resp *sdk.Response, err error) []string {
	if err == nil || resp == nil || resp.Response == nil || resp.StatusCode != http.StatusForbidden {
		return nil
	}
	named := giteaScope.FindStringSubmatch(err.Error())
	if named == nil {
		return nil
	}
	return wordsOf(named[1])
}

func (g gitea) protection(ctx context.Context, branch string) (preflight.Protection, error) {
	client, err := g.within(ctx)
	if err != nil {
		return preflight.Protection{}, err
	}
	doing := answer{doing: "read the protection of the branch " + branch, right: "the scope read:repository"}
	if branch == "" {
		repo, resp, err := client.GetRepo(g.at.Owner, g.at.Name)
		if err != nil {
			return preflight.Protection{}, g.refused(doing, resp, err)
		}
		branch = repo.DefaultBranch
	}
	of, resp, err := client.GetRepoBranch(g.at.Owner, g.at.Name, branch)
	if err != nil {
		return preflight.Protection{}, g.refused(doing, resp, err)
	}
	found := preflight.Protection{Branch: branch, Globs: true}
	if of.EnableStatusCheck {
		found.Required = of.StatusCheckContexts
	}
	return unique(found), nil
}
