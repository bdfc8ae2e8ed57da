package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"headgate.dev/headgate/reconcile/report"
)

// gitLab is GitLab, gitlab.com or an own one.
type gitLab struct {
	at     Repository
	client *gitlab.Client
}

// newGitLab leaves the token, patience and repeated attempts to others: to the courier, and to
// the outbox.
func newGitLab(at Repository, client *http.Client) (gitLab, error) {
	within := *client
	within.Transport = unlinked{client.Transport}
	c, err := gitlab.NewAuthSourceClient(gitlab.Unauthenticated{}, gitlab.WithBaseURL(at.api()), gitlab.WithHTTPClient(&within),
		gitlab.WithUserAgent("headgate"), gitlab.WithoutRetries(), gitlab.WithCustomLimiter(impatient{}))
	if err != nil {
		return gitLab{}, fmt.Errorf("GitLab: %w", err)
	}
	return gitLab{at: at, client: c}, nil
}

// unlinked takes Link headers off answers: the client panics on one that is not well formed,
// and pages are counted in a header of their own.
type unlinked struct{ http.RoundTripper }

func (u unlinked) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if resp != nil {
		resp.Header.Del("Link")
	}
	return resp, err
}

// impatient is a limiter that lets everything pass: a 429 says when to come back.
type impatient struct{}

func (impatient) Wait(context.Context) error { return nil }

// The states of jobs that come to one of ours; others are none that we post.
var jobs = map[string]report.State{
	"pending": report.Pending, "running": report.Pending, "success": report.Success, "failed": report.Failure,
}

func (g gitLab) list(ctx context.Context, commit string) (map[string]Status, error) {
	current, newest := map[string]Status{}, map[string]int64{}
	for page, pages := int64(1), 0; page != 0 && pages < mostPages; pages++ {
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
	s.Description, s.Pull = cut(s.Description, 255), 0
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
		return nil // it is pending already; GitLab takes no other words for it
	}
	return g.trouble(resp, err)
}

func (g gitLab) trouble(resp *gitlab.Response, err error) error {
	return g.refused(answer{right: "the scope api, and its user the role Developer"}, resp, err)
}

// refused makes of what was asked, and what came back, an error.
func (g gitLab) refused(a answer, resp *gitlab.Response, err error) error {
	a.forge, a.of, a.err = "GitLab", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
	}
	// What is no JSON the client repeats whole.
	if refused, ok := errors.AsType[*gitlab.ErrorResponse](err); ok && !strings.HasPrefix(refused.Message, "failed to parse") {
		a.said = strings.TrimSuffix(strings.TrimPrefix(refused.Message, "{message: "), "}")
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
	return Pull{Number: int(is.IID), Head: is.SHA, Target: is.TargetBranch, Fork: from == 0 || from != into}
}

func (g gitLab) open(ctx context.Context) (all []Pull, err error) {
	defer func() {
		if p := recover(); p != nil { // the client panics where one of a list is null
			all, err = nil, &Later{Err: fmt.Errorf("GitLab: cannot understand the answer: %v", p)}
		}
	}()
	for page, pages := int64(1), 0; page != 0 && pages < mostPages; pages++ {
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

func (g gitLab) reading(resp *gitlab.Response, err error) error {
	return g.refused(answer{doing: "read merge requests", right: "the scope read_api or api"}, resp, err)
}

func (g gitLab) self(ctx context.Context) (string, error) {
	user, resp, err := g.client.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return "", g.refused(answer{doing: "read who it is", right: "the scope api"}, resp, err)
	}
	if user == nil || user.Username == "" {
		return "", errors.New("GitLab: the token is of no user")
	}
	return user.Username, nil
}

func (g gitLab) comments(ctx context.Context, number int) ([]comment, error) {
	var all []comment
	for page, pages := int64(1), 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := g.client.Notes.ListMergeRequestNotes(g.at.String(), int64(number), &gitlab.ListMergeRequestNotesOptions{
			ListOptions: gitlab.ListOptions{Page: page, PerPage: 100}, Sort: new("asc"),
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, g.commenting(resp, err)
		}
		for _, n := range got {
			if n != nil && !n.System {
				all = append(all, comment{id: n.ID, author: n.Author.Username, body: n.Body})
			}
		}
		page = resp.NextPage
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

func (g gitLab) commenting(resp *gitlab.Response, err error) error {
	return g.refused(answer{doing: "comment on pull requests", right: "the scope api, and its user the role Reporter"}, resp, err)
}
