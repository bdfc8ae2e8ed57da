package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/report"
)

// KindAzureDevOps is Azure DevOps, Services and Server.
const KindAzureDevOps Kind = "azure-devops"

var azureForge = Forge{
	Kind: KindAzureDevOps,
	Name: "Azure DevOps",

	WebhookHelp: "For Azure DevOps, the secret is the password of basic authentication.",
	addresses: addresses{
		public:   func(host string) bool { return host == azureHost || strings.HasSuffix(host, ".visualstudio.com") },
		suggests: func(path []string) bool { return path[len(path)-2] == "_git" },
		aliases:  map[string]alias{"ssh.dev.azure.com": {azureHost, "v3"}, "vs-ssh.visualstudio.com": {azureHost, "v3"}},
		apiPath:  "/",
		split:    splitAzure,
		segment:  regexp.MustCompile(`^[\pL\pN._()&-][\pL\pN._()& -]*$`), // names of projects; Azure DevOps may allow fewer characters
		nested:   true,
		page:     func(base string, r Repository) string { return base + escaped(r.Owner) + "/_git/" + escaped(r.Name) },
	},
	pipeline:      pipeline{name: "Azure DevOps", token: "SYSTEM_ACCESSTOKEN", read: azurePipelines},
	webhook:       webhook{header: "Authorization", proves: azureProves, event: azureEvent},
	dialect:       report.Dialect{MaxBytes: 65_536}, // Azure DevOps accepts more, which is too long to read
	listed:        true,                             // a token for code cannot read who has write access
	authorization: azureAuthorization,
	open: func(at Repository, api string, over *http.Client) (client, error) {
		return azure{rest{name: "Azure DevOps", at: at, api: api, client: over, signsIn: azureSignsIn}}, nil
	},
	mergeRef: "refs/pull/%d/merge",
	filePath: func(commit, path string, line int) string {
		if line > 0 {
			return fmt.Sprintf("?path=/%s&version=GC%s&line=%d&lineEnd=%d&lineStartColumn=1&lineEndColumn=1", path, commit, line, line+1)
		}
		return "?path=/" + path + "&version=GC" + commit
	},
	commentPath: "/pullrequest/%[1]d?discussionId=%[2]d",
}

const azureHost = "dev.azure.com"

// splitAzure returns the path of the collection or organisation, and the project as the owner.
func splitAzure(base *url.URL, path []string) (below, owner []string) {
	name := path[len(path)-1]
	if base.Path != "" {
		path = append(segments(base.Path), path...)
		base.Path = ""
	}
	owner = path[:len(path)-1]
	if last := len(owner) - 1; owner[last] == "_git" {
		owner = owner[:last]
	}
	if project := len(owner) - 1; project < 0 || project < 1 && base.Host == azureHost {
		owner = append(slices.Clip(owner), name) // the default repository of a project
	}
	return nil, owner
}

// azureAuthorization returns the Authorization header for a token. A personal access token is a password without a
// user name. Tokens of pipelines and of Entra ID are JWTs.
func azureAuthorization(token string) string {
	if !strings.HasPrefix(token, "eyJ") || strings.Count(token, ".") != 2 {
		return basic("", token)
	}
	return "Bearer " + token
}

func azurePipelines(env func(string) string) (Workflow, bool) {
	return Workflow{
		Server: env("SYSTEM_COLLECTIONURI"), Name: env("SYSTEM_TEAMPROJECT") + "/" + env("BUILD_REPOSITORY_NAME"),
		Pull: pullNumber(env("SYSTEM_PULLREQUEST_PULLREQUESTID")), Base: remoteBranch(env("SYSTEM_PULLREQUEST_TARGETBRANCH")), Target: env("SYSTEM_PULLREQUEST_TARGETBRANCH"),
		Head: env("SYSTEM_PULLREQUEST_SOURCECOMMITID"),
		Run:  strings.TrimSuffix(env("SYSTEM_COLLECTIONURI"), "/") + "/" + escaped(env("SYSTEM_TEAMPROJECT")) + "/_build/results?buildId=" + env("BUILD_BUILDID"),
	}, env("TF_BUILD") == "True" && env("BUILD_REPOSITORY_PROVIDER") == "TfsGit"
}

// azure is a client of Azure DevOps.
type azure struct{ rest }

var (
	azureStatus  = answer{right: "the scope Code (status), and its user the right to contribute to the repository"}
	azurePull    = answer{doing: "read pull requests", right: "the scope Code (read)"}
	azureComment = answer{doing: "comment on pull requests", right: "the scope Code (write), or Pull Request Threads (read & write)"}
)

// path returns the path of a call. It must contain an API version; Server 2020 supports this one.
func (z azure) path(below, query string) string {
	return escaped(z.at.Owner) + "/_apis/git/repositories/" + escaped(z.at.Name) + "/" + below + "?" + query + "api-version=6.0"
}

// A gitStatus is a status of a commit or of a pull request.
type gitStatus struct {
	ID          int64  `json:"id,omitempty"`
	IterationID int    `json:"iterationId,omitempty"`
	State       string `json:"state"`
	Description string `json:"description"`
	TargetURL   string `json:"targetUrl,omitempty"`
	Context     struct {
		Genre string `json:"genre"`
		Name  string `json:"name"`
	} `json:"context"`
}

// name returns the context in the form that Headgate and other forges use.
func (s gitStatus) name() string {
	if s.Context.Genre == "" {
		return s.Context.Name
	}
	return s.Context.Genre + "/" + s.Context.Name
}

// azureStates maps the states that Headgate posts.
var azureStates = map[report.State]string{
	report.Pending: "pending", report.Success: "succeeded", report.Failure: "failed", report.Error: "error",
}

func (z azure) list(ctx context.Context, commit string) (map[string]Status, error) {
	states := map[string]report.State{}
	for ours, theirs := range azureStates {
		states[theirs] = ours
	}
	const most = 1000 // maximum size of a page
	current, newest := map[string]Status{}, map[string]int64{}
	for skip, pages := 0, 0; pages < maxPages; pages++ {
		var got struct{ Value []gitStatus }
		query := fmt.Sprintf("latestOnly=true&top=%d&skip=%d&", most, skip)
		if _, err := z.do(ctx, azureStatus, http.MethodGet, z.path("commits/"+commit+"/statuses", query), nil, &got); err != nil {
			return nil, err
		}
		for _, s := range got.Value {
			name := s.name()
			if s.ID < newest[name] {
				continue
			}
			newest[name] = s.ID
			current[name] = Status{Commit: commit, Context: name, State: states[s.State], Description: s.Description, TargetURL: s.TargetURL}
		}
		if len(got.Value) < most {
			break
		}
		skip += most
	}
	return current, nil
}

func (z azure) keep(s Status) Status {
	s.Description, s.Into = s.shortened(255), ""
	return s
}

// create posts the status of the pull request before that of the commit: branch policies read the former, and list
// returns the latter.
func (z azure) create(ctx context.Context, s Status) error {
	status := gitStatus{State: azureStates[s.State], Description: s.Description, TargetURL: s.TargetURL}
	genre, name, ok := strings.Cut(s.Context, "/")
	if !ok {
		genre, name = "", s.Context
	}
	status.Context.Genre, status.Context.Name = genre, name
	if s.Pull != 0 {
		iteration, err := z.iteration(ctx, s)
		if err != nil {
			return err
		}
		if iteration != 0 {
			on := status
			on.IterationID = iteration
			if _, err := z.do(ctx, azureStatus, http.MethodPost, z.path(fmt.Sprintf("pullRequests/%d/statuses", s.Pull), ""), on, nil); err != nil {
				return err
			}
		}
	}
	_, err := z.do(ctx, azureStatus, http.MethodPost, z.path("commits/"+s.Commit+"/statuses", ""), status, nil)
	return err
}

// An azureUser is an identity as Azure DevOps returns it. The organisation chooses the unique name, which usually is
// an email address.
type azureUser struct{ ID, UniqueName, DisplayName string }

func (u azureUser) names() []string {
	return slices.DeleteFunc([]string{u.ID, u.UniqueName}, func(s string) bool { return s == "" })
}

// An azureIteration is a push to a pull request, or a change of its target.
type azureIteration struct {
	ID              int
	Author          azureUser
	CreatedDate     time.Time
	SourceRefCommit struct{ CommitID string }
}

func (z azure) iterations(ctx context.Context, number int) ([]azureIteration, error) {
	var got struct{ Value []azureIteration }
	_, err := z.do(ctx, azurePull, http.MethodGet, z.path(fmt.Sprintf("pullRequests/%d/iterations", number), ""), nil, &got)
	return got.Value, err
}

// iteration returns the last push that made a commit the head of a pull request, or 0. A status of one iteration does
// not apply to the next.
func (z azure) iteration(ctx context.Context, s Status) (int, error) {
	got, err := z.iterations(ctx, s.Pull)
	if err != nil {
		return 0, err
	}
	for _, is := range slices.Backward(got) {
		if is.SourceRefCommit.CommitID == s.Commit {
			return is.ID, nil
		}
	}
	return 0, nil
}

// An azureRequest is a pull request as Azure DevOps returns it.
type azureRequest struct {
	PullRequestID         int
	TargetRefName         string
	LastMergeSourceCommit struct{ CommitID string }
	ForkSource            *struct{}
	CreatedBy             struct{ ID string }
}

func (is azureRequest) pull() Pull {
	return Pull{Number: is.PullRequestID, Head: is.LastMergeSourceCommit.CommitID, Target: strings.TrimPrefix(is.TargetRefName, "refs/heads/"), Fork: is.ForkSource != nil, Author: is.CreatedBy.ID}
}

func (z azure) open(ctx context.Context) ([]Pull, error) {
	const most = 100 // maximum size of a page
	var all []Pull
	for pages := range maxPages {
		var got struct{ Value []azureRequest }
		query := fmt.Sprintf("searchCriteria.status=active&$top=%d&$skip=%d&", most, pages*most)
		if _, err := z.do(ctx, azurePull, http.MethodGet, z.path("pullRequests", query), nil, &got); err != nil {
			return nil, err
		}
		all = append(all, pullsOf(got.Value, azureRequest.pull)...)
		if len(got.Value) < most {
			break
		}
	}
	return all, nil
}

func (z azure) pull(ctx context.Context, number int) (Pull, error) {
	var is azureRequest
	if _, err := z.do(ctx, azurePull, http.MethodGet, z.path(fmt.Sprintf("pullRequests/%d", number), ""), nil, &is); err != nil {
		return Pull{}, err
	}
	return is.pull(), nil
}

// self requests the user from the organisation of the project.
func (z azure) self(ctx context.Context) (string, error) {
	var is struct{ AuthenticatedUser struct{ ID string } }
	organisation := path.Dir(z.at.Owner) + "/"
	if organisation == "./" { // the organisation is part of the host name
		organisation = ""
	}
	if _, err := z.do(ctx, answer{doing: "read who it is"}, http.MethodGet, escaped(organisation)+"_apis/connectionData", nil, &is); err != nil {
		return "", err
	}
	if is.AuthenticatedUser.ID == "" {
		return "", fmt.Errorf("%s: the token belongs to no user", z.name)
	}
	return is.AuthenticatedUser.ID, nil
}

// comments returns the comments that start a thread.
func (z azure) comments(ctx context.Context, number int, _ time.Time) ([]comment, error) {
	var got struct {
		Value []struct {
			ID        int64
			IsDeleted bool
			Comments  []struct {
				ID          int64
				IsDeleted   bool
				Content     string
				CommentType string
				Author      azureUser
				Published   time.Time `json:"publishedDate"`
				Updated     time.Time `json:"lastContentUpdatedDate"`
			}
		}
	}
	if _, err := z.do(ctx, azureComment, http.MethodGet, z.path(fmt.Sprintf("pullRequests/%d/threads", number), ""), nil, &got); err != nil {
		return nil, err
	}
	var all []comment
	for _, thread := range got.Value {
		if len(thread.Comments) == 0 || thread.IsDeleted || thread.Comments[0].IsDeleted {
			continue
		}
		c := thread.Comments[0]
		is := comment{thread: thread.ID, id: c.ID, author: c.Author.ID, names: c.Author.names(), body: c.Content, created: c.Published, updated: c.Updated, bot: c.CommentType == "system"}
		if is.shown = c.Author.UniqueName; is.shown == "" {
			is.shown = c.Author.ID
		}
		all = append(all, is)
	}
	return all, nil
}

// authors returns the user who opened the pull request, those who pushed to it, and the addresses in its commits.
// Azure DevOps does not report whose address it is, so an address belongs to a known user only if its name is unique.
func (z azure) authors(ctx context.Context, number int) (authors, error) {
	var is struct{ CreatedBy azureUser }
	at := fmt.Sprintf("pullRequests/%d", number)
	if _, err := z.do(ctx, azurePull, http.MethodGet, z.path(at, ""), nil, &is); err != nil {
		return authors{}, err
	}
	if is.CreatedBy.ID == "" {
		return authors{}, fmt.Errorf("%s: pull request %d has no author", z.name, number)
	}
	pushes, err := z.iterations(ctx, number)
	if err != nil {
		return authors{}, err
	}
	all := authors{addresses: map[string]bool{}}
	names := is.CreatedBy.names()
	for _, p := range pushes {
		names = append(names, p.Author.names()...)
	}
	for _, name := range names {
		all.known = append(all.known, user{name: name})
		all.addresses[strings.ToLower(name)] = true
	}
	type signature struct{ Email string }
	type one struct {
		CommitID, Comment string
		CommentTruncated  bool
		Author, Committer signature
	}
	const most = 500 // maximum size of a page
	var got struct{ Value []one }
	if _, err := z.do(ctx, azurePull, http.MethodGet, z.path(at+"/commits", fmt.Sprintf("$top=%d&", most)), nil, &got); err != nil {
		return authors{}, err
	}
	if len(got.Value) >= most {
		return authors{}, errTooManyCommits
	}
	for _, c := range got.Value {
		if c.CommentTruncated { // co-authors are at the end of the message
			if !isCommit(c.CommitID) {
				return authors{}, fmt.Errorf("%s: cannot read the commits of pull request %d", z.name, number)
			}
			if _, err := z.do(ctx, azurePull, http.MethodGet, z.path("commits/"+c.CommitID, ""), nil, &c); err != nil {
				return authors{}, err
			}
		}
		for _, email := range []string{c.Author.Email, c.Committer.Email} {
			all.known = append(all.known, user{name: email})
			all.addAddress(c.CommitID, email)
		}
		for _, m := range coauthor.FindAllStringSubmatch(c.Comment, -1) {
			all.known = append(all.known, user{name: m[1]})
		}
		all.coauthors(c.CommitID, c.Comment)
	}
	return all, nil
}

func (z azure) verdicts(ctx context.Context, commit string) ([]pastStatus, error) {
	states := map[string]report.State{}
	for ours, theirs := range azureStates {
		states[theirs] = ours
	}
	const most = 1000 // maximum size of a page
	var all []pastStatus
	for skip := range maxPages {
		var got struct {
			Value []struct {
				gitStatus

				CreationDate time.Time
				CreatedBy    azureUser
			}
		}
		query := fmt.Sprintf("latestOnly=false&top=%d&skip=%d&", most, skip*most)
		if _, err := z.do(ctx, azureStatus, http.MethodGet, z.path("commits/"+commit+"/statuses", query), nil, &got); err != nil {
			return nil, err
		}
		for _, s := range got.Value {
			name := s.name()
			if !s.CreationDate.IsZero() {
				all = append(all, pastStatus{name, states[s.State], s.CreationDate, s.CreatedBy.ID})
			}
		}
		if len(got.Value) < most {
			break
		}
	}
	return all, nil
}

func (z azure) pushed(ctx context.Context, number int, head string) (time.Time, error) {
	got, err := z.iterations(ctx, number)
	var at time.Time
	for _, is := range slices.Backward(got) {
		if is.SourceRefCommit.CommitID != head {
			break
		}
		at = is.CreatedDate
	}
	return at, err
}

func (z azure) history(ctx context.Context, commit string, since time.Time) ([]string, error) {
	var got struct {
		Value []struct {
			CommitID  string
			Committer struct{ Date time.Time }
		}
	}
	query := fmt.Sprintf("searchCriteria.itemVersion.version=%s&searchCriteria.itemVersion.versionType=commit&searchCriteria.$top=%d&", commit, maxHistory)
	if _, err := z.do(ctx, azurePull, http.MethodGet, z.path("commits", query), nil, &got); err != nil {
		return nil, err
	}
	var all []string
	for _, c := range got.Value {
		if !c.Committer.Date.Before(since) {
			all = append(all, c.CommitID)
		}
	}
	return all, nil
}

// merged returns the pull requests whose merge made a commit, and those that contain it, as after a fast-forward merge.
func (z azure) merged(ctx context.Context, commit string) ([]Pull, error) {
	type query struct {
		Type  string   `json:"type"`
		Items []string `json:"items"`
	}
	type request struct {
		PullRequestID int
		Status        string
	}
	var got struct{ Results []map[string][]request }
	in := map[string]any{"queries": []query{{"lastMergeCommit", []string{commit}}, {"commit", []string{commit}}}}
	if _, err := z.do(ctx, azurePull, http.MethodPost, z.path("pullrequestquery", ""), in, &got); err != nil {
		return nil, err
	}
	var all []Pull
	for _, result := range got.Results {
		for _, is := range result[commit] {
			if is.Status != "completed" || slices.ContainsFunc(all, func(p Pull) bool { return p.Number == is.PullRequestID }) {
				continue
			}
			whole, err := z.pull(ctx, is.PullRequestID)
			if err != nil {
				return nil, err
			}
			all = append(all, whole)
		}
	}
	return all, nil
}

// comment starts a closed thread, because a branch policy may require that no thread is open, and the comment needs no answer.
func (z azure) comment(ctx context.Context, number int, body string) error {
	thread := map[string]any{
		"status":   "closed",
		"comments": []any{map[string]any{"parentCommentId": 0, "commentType": "text", "content": body}},
	}
	_, err := z.do(ctx, azureComment, http.MethodPost, z.path(fmt.Sprintf("pullRequests/%d/threads", number), ""), thread, nil)
	return err
}

func (z azure) edit(ctx context.Context, number int, c comment, body string) error {
	at := z.path(fmt.Sprintf("pullRequests/%d/threads/%d/comments/%d", number, c.thread, c.id), "")
	_, err := z.do(ctx, azureComment, http.MethodPatch, at, map[string]string{"content": body}, nil)
	return err
}

func (z azure) remove(ctx context.Context, number int, c comment) error {
	_, err := z.do(ctx, azureComment, http.MethodDelete, z.path(fmt.Sprintf("pullRequests/%d/threads/%d/comments/%d", number, c.thread, c.id), ""), nil, nil)
	return err
}

// azureSignsIn reports whether an answer is the sign-in page for unknown users.
func azureSignsIn(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNonAuthoritativeInfo ||
		resp.StatusCode == http.StatusFound && strings.Contains(resp.Header.Get("Location"), "_signin")
}

// azureProves checks the secret, which is the password of basic authentication. Azure DevOps does not sign its requests.
func azureProves(d delivery, secret string) bool {
	_, password, ok := (&http.Request{Header: d.header}).BasicAuth()
	return equalSecrets(password, secret) && ok
}

// An azureRepository is a repository as Azure DevOps returns it.
type azureRepository struct {
	Name, RemoteURL, DefaultBranch string
	Project                        struct{ Name string }
}

func azureEvent(d delivery) (Event, error) {
	var event struct {
		EventType string
		Resource  struct {
			RefUpdates  []struct{ Name string }
			Repository  azureRepository
			PullRequest struct{ Repository azureRepository } // set for an event of a comment
		}
	}
	if err := decode(d, &event); err != nil {
		return Event{}, err
	}
	pull := slices.Contains([]string{"git.pullrequest.created", "git.pullrequest.updated", "git.pullrequest.merged"}, event.EventType)
	of := event.Resource.Repository
	if event.EventType == "ms.vss-code.git-pullrequest-comment-event" {
		pull, of = true, event.Resource.PullRequest.Repository
	}
	if event.EventType != "git.push" && !pull {
		return Event{}, nil
	}
	// An organisation has two hosts, and paths on one of them lack its name. A repository with the name of its
	// project may also lack the name of the project.
	names := []string{of.Project.Name + "/_git/" + of.Name}
	if of.RemoteURL != "" {
		names = append(names, of.RemoteURL)
	}
	if pull {
		return pullOf(names...)
	}
	var refs []string
	for _, u := range event.Resource.RefUpdates {
		refs = append(refs, u.Name)
	}
	return pushOf(names, of.DefaultBranch, refs...)
}
