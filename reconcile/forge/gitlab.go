package forge

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/report"
)

// KindGitLab is GitLab, gitlab.com or self-managed.
const KindGitLab Kind = "gitlab"

var gitLabForge = Forge{
	Kind:     KindGitLab,
	Name:     "GitLab",
	CIFile:   ".gitlab-ci.yml",
	Annotate: report.CodeQuality,
	addresses: addresses{
		public:  func(host string) bool { return host == "gitlab.com" },
		labels:  []string{"gitlab"},
		aliases: map[string]alias{"altssh.gitlab.com": {host: "gitlab.com"}},
		apiPath: "/api/v4/",
		split:   func(_ *url.URL, path []string) (below, owner []string) { return nil, path[:len(path)-1] }, // groups may contain groups
		nested:  true,
	},
	pipeline:    pipeline{name: "GitLab", token: "GITLAB_TOKEN", read: gitLabCI},
	webhook:     webhook{header: "X-Gitlab-Event", proves: gitLabProves, id: gitLabID, event: gitLabEvent},
	dialect:     report.Dialect{MaxBytes: 65_536}, // GitLab accepts more, which is too long to read
	open:        newGitLab,
	mergeRef:    "refs/merge-requests/%d/merge",
	filePath:    hashLine("/-/blob/"),
	commentPath: "/-/merge_requests/%[1]d#note_%[2]d",
}

func gitLabCI(env func(string) string) (Workflow, bool) {
	w := Workflow{
		Server: env("CI_SERVER_URL"), Name: env("CI_PROJECT_PATH"), Pull: pullNumber(env("CI_MERGE_REQUEST_IID")),
		// The runner only fetches the branch of the merge request.
		Base: cmp.Or(env("CI_MERGE_REQUEST_DIFF_BASE_SHA"), remoteBranch(env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"))), Target: env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
		Head: cmp.Or(env("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), env("CI_COMMIT_SHA")), // the former in a merged results pipeline
		Run:  env("CI_JOB_URL"),
		Fork: env("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != env("CI_MERGE_REQUEST_PROJECT_ID"),
	}
	if env("CI_MERGE_REQUEST_EVENT_TYPE") == "merge_train" { // the commit of the train is a merge into what is ahead of it
		w.Queued, w.Head, w.Base = true, env("CI_COMMIT_SHA"), cmp.Or(env("CI_MERGE_REQUEST_TARGET_BRANCH_SHA"), w.Base)
	}
	return w, env("GITLAB_CI") == "true"
}

// gitLab is a client of GitLab.
type gitLab struct {
	at     Repository
	client *gitlab.Client
}

// newGitLab leaves the token to the transport. It leaves rate limits and retries to the outbox.
func newGitLab(at Repository, api string, over *http.Client) (client, error) {
	within := *over
	within.Transport = unlinked{over.Transport}
	c, err := gitlab.NewAuthSourceClient(gitlab.Unauthenticated{}, gitlab.WithBaseURL(api), gitlab.WithHTTPClient(&within),
		gitlab.WithUserAgent("headgate"), gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("GitLab: %w", err)
	}
	return gitLab{at: at, client: c}, nil
}

// unlinked removes Link headers from answers: the client panics on a malformed one, and another header has the number of pages.
type unlinked struct{ http.RoundTripper }

func (u unlinked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if resp != nil {
		resp.Header.Del("Link")
	}
	return resp, err
}

// unlimited is a limiter that never waits. An answer with status 429 states when to retry.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// jobs maps the job states that Headgate posts.
var jobs = map[string]report.State{
	"pending": report.Pending, "running": report.Pending, "success": report.Success, "failed": report.Failure,
}

func (g gitLab) list(ctx context.Context, commit string) (map[string]Status, error) {
	current, newest := map[string]Status{}, map[string]int64{}
	for page, pages := int64(1), 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.Commits.GetCommitStatuses(g.at.String(), commit, &gitlab.GetCommitStatusesOptions{
			ListOptions: gitlab.ListOptions{Page: page, PerPage: 100},
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			if s == nil || s.ID < newest[s.Name] {
				continue
			}
			newest[s.Name] = s.ID
			current[s.Name] = Status{
				Commit: commit, Context: s.Name, State: jobs[s.Status], Description: s.Description, TargetURL: s.TargetURL,
			}
		}
		page = resp.NextPage
	}
	return current, nil
}

func (g gitLab) keep(s Status) Status {
	s.Description, s.Into, s.Pull = s.shortened(255), "", 0
	if s.State == report.Error {
		s.State = report.Failure
	}
	return s
}

func (g gitLab) create(ctx context.Context, s Status) error {
	status := gitlab.SetCommitStatusOptions{Name: &s.Context, Description: &s.Description}
	switch s.State {
	case report.Pending:
		status.State = gitlab.Pending
	case report.Success:
		status.State = gitlab.Success
	default:
		status.State = gitlab.Failed
	}
	if s.TargetURL != "" {
		status.TargetURL = &s.TargetURL
	}
	_, resp, err := g.client.Commits.SetCommitStatus(g.at.String(), s.Commit, &status, gitlab.WithContext(ctx))
	switch refused, ok := errors.AsType[*gitlab.ErrorResponse](err); {
	case err == nil:
		return nil
	case ok && s.State == report.Pending && refused.StatusCode == http.StatusBadRequest && strings.Contains(refused.Message, "Cannot transition status"):
		return nil // the status is pending already, and GitLab accepts no new description for it
	}
	return g.trouble(resp, err)
}

func (g gitLab) trouble(resp *gitlab.Response, err error) error {
	return g.refused(answer{right: "the scope api, and its user the role Developer"}, resp, err)
}

// refused returns the error for a failed request.
func (g gitLab) refused(a answer, resp *gitlab.Response, err error) error {
	a.forge, a.of, a.err = "GitLab", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
	}
	return a.trouble(time.Now())
}

func (g gitLab) pull(ctx context.Context, number int) (Pull, error) {
	got, resp, err := g.client.MergeRequests.GetMergeRequest(g.at.String(), int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.reading(resp, err)
	}
	if got == nil { // the answer was null
		return Pull{}, fmt.Errorf("GitLab: merge request %d has no head", number)
	}
	return gitLabPull(&got.BasicMergeRequest), nil
}

func gitLabPull(is *gitlab.BasicMergeRequest) Pull {
	from, into := is.SourceProjectID, is.TargetProjectID
	pull := Pull{Number: int(is.IID), Head: is.SHA, Target: is.TargetBranch, Fork: from == 0 || from != into, Updated: timeOf(is.UpdatedAt)}
	if is.Author != nil {
		pull.Author = authorOf(is.Author.ID)
	}
	return pull
}

func (g gitLab) open(ctx context.Context) (all []Pull, err error) {
	defer func() {
		if p := recover(); p != nil { // the client panics if a list item is null
			all, err = nil, &Later{Err: fmt.Errorf("GitLab: cannot understand the answer: %v", p)}
		}
	}()
	for page, pages := int64(1), 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.MergeRequests.ListProjectMergeRequests(g.at.String(), &gitlab.ListProjectMergeRequestsOptions{
			ListOptions: gitlab.ListOptions{Page: page, PerPage: 100}, State: new("opened"), OrderBy: new("created_at"), Sort: new("desc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, is := range got {
			all = append(all, gitLabPull(is))
		}
		page = resp.NextPage
	}
	return all, nil
}

// queued lists the merge trains. The commit of a pipeline merges the merge request, and those ahead of it, into the target.
func (g gitLab) queued(ctx context.Context) ([]Pull, error) {
	var all []Pull
	for page, pages := int64(1), 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.MergeTrains.ListProjectMergeTrains(g.at.String(), &gitlab.ListMergeTrainsOptions{
			ListOptions: gitlab.ListOptions{Page: page, PerPage: 100}, Scope: new("active"),
		}, gitlab.WithContext(ctx))
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return nil, nil // this GitLab has none
		}
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, car := range got {
			if car != nil && car.MergeRequest != nil && car.Pipeline != nil {
				all = append(all, Pull{Number: int(car.MergeRequest.IID), Head: car.Pipeline.SHA, Target: car.TargetBranch, Queued: true})
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitLab) reading(resp *gitlab.Response, err error) error {
	return g.refused(answer{doing: "read merge requests", right: "the scope read_api or api"}, resp, err)
}

func (g gitLab) self(ctx context.Context) (string, error) {
	user, resp, err := g.client.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return "", g.refused(answer{doing: "read who it is", right: "the scope api"}, resp, err)
	}
	if user == nil || user.Username == "" {
		return "", errors.New("GitLab: the token belongs to no user")
	}
	return user.Username, nil
}

func (g gitLab) comments(ctx context.Context, number int, since time.Time) ([]comment, error) {
	var all []comment
	order := "asc"
	if !since.IsZero() {
		order = "desc"
	}
	for page, pages := int64(1), 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.Notes.ListMergeRequestNotes(g.at.String(), int64(number), &gitlab.ListMergeRequestNotesOptions{
			ListOptions: gitlab.ListOptions{Page: page, PerPage: 100}, Sort: &order, OrderBy: new("created_at"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, g.commenting(resp, err)
		}
		for _, n := range got {
			if n != nil && !n.System {
				all = append(all, comment{
					id: n.ID, author: n.Author.Username, of: n.Author.ID, body: n.Body, bot: gitLabBot.MatchString(n.Author.Username),
					created: timeOf(n.CreatedAt), updated: timeOf(n.UpdatedAt),
				})
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

// gitLabBot matches the user names of project access tokens, group access tokens and service accounts.
var gitLabBot = regexp.MustCompile(`^(project|group)_[0-9]+_bot|^service_account_`)

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (g gitLab) mayWrite(ctx context.Context, who comment) (bool, error) {
	if who.of == 0 {
		return false, nil
	}
	got, resp, err := g.client.ProjectMembers.GetInheritedProjectMember(g.at.String(), who.of, gitlab.WithContext(ctx))
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return false, nil // the user is not a member
	}
	if err != nil {
		return false, g.refused(answer{doing: "read who may write to the repository", right: "the scope read_api or api"}, resp, err)
	}
	return got != nil && got.State == "active" && got.AccessLevel >= gitlab.DeveloperPermissions, nil
}

// authors uses GraphQL, because the REST API does not return the users who are the authors of commits.
func (g gitLab) authors(ctx context.Context, number int) (authors, error) {
	is, resp, err := g.client.MergeRequests.GetMergeRequest(g.at.String(), int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return authors{}, g.reading(resp, err)
	}
	if is == nil || is.Author == nil || is.Author.Username == "" {
		return authors{}, fmt.Errorf("GitLab: merge request %d has no author", number)
	}
	all := authors{known: []user{{id: is.Author.ID, name: is.Author.Username}}}
	after := ""
	for pages := 0; ; pages++ {
		if pages == maxPages {
			return authors{}, errTooManyCommits
		}
		var got gitLabCommits
		if resp, err := g.graphQL(ctx, gitLabCommitsQuery, map[string]any{"path": g.at.String(), "number": strconv.Itoa(number), "after": after}, &got); err != nil {
			return authors{}, g.reading(resp, err)
		}
		pull := got.Data.Project.MergeRequest
		if len(got.Errors) > 0 || pull == nil || pull.Commits == nil {
			return authors{}, fmt.Errorf("GitLab: cannot read the authors of merge request %d", number)
		}
		for _, c := range pull.Commits.Nodes {
			var author, committer user
			if c.Author != nil {
				author = user{id: globalID(c.Author.ID), name: c.Author.Username}
			}
			all.add(c.SHA, author, c.AuthorEmail)
			if strings.EqualFold(c.CommitterEmail, c.AuthorEmail) {
				committer = author
			}
			all.add(c.SHA, committer, c.CommitterEmail)
			all.coauthors(c.SHA, c.Message)
		}
		if !pull.Commits.PageInfo.HasNextPage {
			return all, nil
		}
		after = pull.Commits.PageInfo.EndCursor
	}
}

// globalID returns the number in a global ID, such as gid://gitlab/User/42.
func globalID(global string) int64 {
	id, _ := strconv.ParseInt(path.Base(global), 10, 64) // 0 if it is something else
	return id
}

const gitLabCommitsQuery = `query($path: ID!, $number: String!, $after: String) { project(fullPath: $path) { mergeRequest(iid: $number) {
 commits(first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { sha message authorEmail committerEmail author { id username } } } } } }`

// gitLabCommits is the answer to gitLabCommitsQuery.
type gitLabCommits struct {
	Data struct {
		Project struct {
			MergeRequest *struct {
				Commits *struct {
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
					Nodes []struct {
						SHA, Message, AuthorEmail, CommitterEmail string
						Author                                    *struct{ ID, Username string }
					}
				}
			}
		}
	}
	Errors []any
}

func (g gitLab) graphQL(ctx context.Context, query string, variables map[string]any, into any) (*gitlab.Response, error) {
	req, err := g.client.NewRequest(http.MethodPost, "", map[string]any{"query": query, "variables": variables}, []gitlab.RequestOptionFunc{gitlab.WithContext(ctx)})
	if err != nil {
		return nil, err
	}
	at := *g.client.BaseURL()
	at.Path = strings.TrimSuffix(at.Path, "v4/") + "graphql"
	req.URL = &at
	return g.client.Do(req, into)
}

func (g gitLab) verdicts(ctx context.Context, commit string) ([]pastStatus, error) {
	var all []pastStatus
	for page, pages := int64(1), 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := g.client.Commits.GetCommitStatuses(g.at.String(), commit, &gitlab.GetCommitStatusesOptions{
			ListOptions: gitlab.ListOptions{Page: page, PerPage: 100}, All: new(true),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			if s != nil {
				all = append(all, pastStatus{s.Name, jobs[s.Status], timeOf(s.CreatedAt), s.Author.Username})
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

// pushed reads the versions of a merge request: each push creates one.
func (g gitLab) pushed(ctx context.Context, number int, head string) (time.Time, error) {
	got, resp, err := g.client.MergeRequests.GetMergeRequestDiffVersions(g.at.String(), int64(number), &gitlab.GetMergeRequestDiffVersionsOptions{ListOptions: gitlab.ListOptions{PerPage: 100}}, gitlab.WithContext(ctx))
	if err != nil {
		return time.Time{}, g.reading(resp, err)
	}
	got = slices.DeleteFunc(got, func(v *gitlab.MergeRequestDiffVersion) bool { return v == nil })
	slices.SortFunc(got, func(a, b *gitlab.MergeRequestDiffVersion) int { return cmp.Compare(b.ID, a.ID) })
	var at time.Time
	for _, v := range got {
		if v.HeadCommitSHA != head {
			break
		}
		at = timeOf(v.CreatedAt)
	}
	return at, nil
}

// reviews returns the approvals of a merge request. GitLab reports no commit for them, so the time decides.
func (g gitLab) reviews(ctx context.Context, number int) ([]review, error) {
	got, resp, err := g.client.MergeRequestApprovals.GetConfiguration(g.at.String(), int64(number), gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.reading(resp, err)
	}
	if got == nil {
		return nil, nil
	}
	var all []review
	for _, a := range got.ApprovedBy {
		if a != nil && a.User != nil && a.ApprovedAt != nil {
			by := comment{author: a.User.Username, of: a.User.ID, bot: gitLabBot.MatchString(a.User.Username), created: *a.ApprovedAt}
			all = append(all, review{by, "", true, false})
		}
	}
	return all, nil
}

func (g gitLab) history(ctx context.Context, commit string, since time.Time) ([]string, error) {
	got, resp, err := g.client.Commits.ListCommits(g.at.String(), &gitlab.ListCommitsOptions{RefName: &commit, Since: &since, ListOptions: gitlab.ListOptions{PerPage: maxHistory}}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.reading(resp, err)
	}
	var all []string
	for _, c := range got {
		if c != nil {
			all = append(all, c.ID)
		}
	}
	return all, nil
}

func (g gitLab) merged(ctx context.Context, commit string) (all []Pull, err error) {
	defer func() {
		if p := recover(); p != nil { // the client panics if a list item is null
			all, err = nil, &Later{Err: fmt.Errorf("GitLab: cannot understand the answer: %v", p)}
		}
	}()
	got, resp, err := g.client.Commits.ListMergeRequestsByCommit(g.at.String(), commit, gitlab.WithContext(ctx))
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return nil, nil // GitLab does not know the commit
	}
	if err != nil {
		return nil, g.reading(resp, err)
	}
	for _, is := range got {
		if is.State == "merged" {
			all = append(all, gitLabPull(is))
		}
	}
	return all, nil
}

func (g gitLab) comment(ctx context.Context, number int, body string) error {
	if _, resp, err := g.client.Notes.CreateMergeRequestNote(g.at.String(), int64(number), &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx)); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitLab) edit(ctx context.Context, number int, c comment, body string) error {
	if _, resp, err := g.client.Notes.UpdateMergeRequestNote(g.at.String(), int64(number), c.id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx)); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitLab) remove(ctx context.Context, number int, c comment) error {
	if resp, err := g.client.Notes.DeleteMergeRequestNote(g.at.String(), int64(number), c.id, gitlab.WithContext(ctx)); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitLab) commenting(resp *gitlab.Response, err error) error {
	return g.refused(answer{doing: "comment on pull requests", right: "the scope api, and its user the role Reporter"}, resp, err)
}

// maxSkew is the maximum difference between the clocks of GitLab and Headgate, plus the duration of a request.
const maxSkew = 5 * time.Minute

// gitLabProves checks both kinds of secret: signing tokens, which begin with whsec_, and secret tokens, which older
// releases of GitLab send in clear text. A secret of one kind is never accepted as the other.
func gitLabProves(d delivery, secret string) bool {
	encoded, signing := strings.CutPrefix(secret, "whsec_")
	if !signing {
		return equalSecrets(d.header.Get("X-Gitlab-Token"), secret)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return false
	}
	id, sent := d.header.Get("Webhook-Id"), d.header.Get("Webhook-Timestamp")
	at, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || id == "" || time.Since(time.Unix(at, 0)).Abs() > maxSkew {
		return false
	}
	want := sum(key, []byte(id+"."+sent+"."), d.body)
	proven := false
	for signature := range strings.FieldsSeq(d.header.Get("Webhook-Signature")) {
		signature, ok := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(signature)
		proven = proven || ok && err == nil && hmac.Equal(got, want)
	}
	return proven
}

// gitLabID returns the signed ID of a delivery, or "". The content does not identify a delivery: when a branch moves
// back and forth, two pushes have the same content.
func gitLabID(d delivery) string {
	if id := d.header.Get("Webhook-Id"); id != "" {
		return id
	}
	return d.header.Get("Idempotency-Key")
}

func gitLabEvent(d delivery) (Event, error) {
	var event struct {
		Kind    string `json:"object_kind"`
		Ref     string
		Project struct { // the target project of a merge request
			Path          string `json:"path_with_namespace"`
			DefaultBranch string `json:"default_branch"`
		}
	}
	if err := decode(d, &event); err != nil {
		return Event{}, err
	}
	switch event.Kind {
	case "push", "tag_push":
		return pushOf([]string{event.Project.Path}, branch(event.Project.DefaultBranch), event.Ref)
	case "merge_request", "note":
		return pullOf(event.Project.Path)
	}
	return Event{}, nil
}

func (g gitLab) userID(ctx context.Context, name string) (int64, error) {
	all, resp, err := g.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
	if resp != nil && resp.StatusCode == http.StatusNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, g.refused(answer{doing: "read the approver " + name, right: "the scope read_api or api"}, resp, err)
	}
	for _, user := range all {
		if user != nil && strings.EqualFold(user.Username, name) {
			return user.ID, nil
		}
	}
	return 0, nil
}

const gitLabRight = "the scope api, and its user the role Developer"

func (g gitLab) token(ctx context.Context) (preflight.Token, error) {
	found := preflight.Token{Forge: "GitLab", Right: gitLabRight, Enough: []string{"api"}, Shown: true}
	self, resp, err := g.client.PersonalAccessTokens.GetSinglePersonalAccessToken(gitlab.WithContext(ctx))
	if err != nil {
		return found, g.refused(answer{doing: "read the scopes of the token", right: gitLabRight}, resp, err)
	}
	found.Scopes = append([]string{}, self.Scopes...)
	found.Expiry = preflight.Expiry{Of: "the token of GitLab", Endless: self.ExpiresAt == nil}
	if self.ExpiresAt != nil {
		found.Expiry = tokenExpiry("GitLab", time.Time(*self.ExpiresAt))
	}
	project, err := g.project(ctx)
	if err != nil {
		return found, err
	}
	if of := project.Permissions; of != nil {
		found.MayWrite = of.ProjectAccess != nil && of.ProjectAccess.AccessLevel >= gitlab.DeveloperPermissions ||
			of.GroupAccess != nil && of.GroupAccess.AccessLevel >= gitlab.DeveloperPermissions
	}
	return found, nil
}

func (g gitLab) project(ctx context.Context) (*gitlab.Project, error) {
	project, resp, err := g.client.Projects.GetProject(g.at.String(), nil, gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.refused(answer{doing: "read the project", right: gitLabRight}, resp, err)
	}
	if project == nil {
		return nil, errors.New("GitLab: cannot understand the answer")
	}
	return project, nil
}

// protection returns whether merges need a successful pipeline: GitLab counts every status of a commit as part of it, and has no list of
// required ones.
func (g gitLab) protection(ctx context.Context, branch string) (preflight.Protection, error) {
	project, err := g.project(ctx)
	if err != nil {
		return preflight.Protection{}, err
	}
	if branch == "" {
		branch = project.DefaultBranch
	}
	return preflight.Protection{Branch: branch, Pipeline: project.OnlyAllowMergeIfPipelineSucceeds}, nil
}
