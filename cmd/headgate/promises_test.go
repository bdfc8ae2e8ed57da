package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A promise is a part of a sentence, and the tests that show it: "reconcile/git TestVerifyHead".
type promise struct {
	text  string
	tests []string
}

// promisesOf are the promises of a document, or of the pages in a folder. Whoever changes one of these sentences names the tests that show the new one.
var promisesOf = map[string][]promise{
	".github/SECURITY.md": {
		// Authors of pull requests.
		{"run code;", []string{"fixtures/attack TestVerbs", "render/kustomize TestRefused"}},
		{"read a cluster, or a Secret that the target does not name;", []string{"fixtures/attack TestLoop", "reconcile/registry TestHeadUsesSecretsOfItsTarget"}},
		{"make Headgate connect to a registry that neither the target nor the Sync names", []string{"reconcile/registry TestHeadReachesWhatItsTargetNames"}},
		{"or to another internal address;", []string{"reconcile/registry TestHeadIsNotSentInside", "reconcile/registry TestHeadBehindProxy"}},
		{"learn from an error which hosts or Secrets exist;", []string{"reconcile/registry TestHeadUsesSecretsOfItsTarget", "reconcile/registry TestHeadIsNotSentInside"}},
		{"turn a failed status into success;", []string{"reconcile TestSharedHead", "reconcile TestRetarget", "fixtures/loop TestHeads"}},
		{"so that a required signature drops out unseen", []string{"render/packages TestDroppedSignatures", "render/packages TestALockDoesNotReplaceADigest"}},
		{"with a Sync nothing, unless it has `forkPreviews`", []string{"reconcile TestFollowerFork", "reconcile TestFollowerForkAllowed"}},
		{"the same, without credentials and only from the listed registries", []string{"reconcile/registry TestForkHasNoCredentials", "reconcile/registry TestForkAsksAllowedRegistriesOnly"}},
		// Committers and administrators.
		{"only if a listed key signed the commit", []string{"reconcile/git TestVerifyHead", "reconcile/git TestVerifyTag", "reconcile TestUnverifiedCommit"}},
		{"get past guards that cannot be approved", []string{"reconcile/guard TestAllowedKinds", "reconcile/guard TestAllowedActivations", "reconcile/guard TestApprovedPastOthers"}},
		{"copy with references from an object", []string{"reconcile/draft TestReferencesReadOnlyWhatIsAllowed"}},
		{"change what another sync owns;", []string{"reconcile/ownership TestAdoption", "reconcile/cluster TestCopies"}},
		{"change the Sync itself", []string{"examples TestRightsToWriteObjects", "reconcile/guard TestBookkeepingIsNeverAnObjectOfACommit"}},
		{"have a commit applied, if `source.verify` is set", []string{"reconcile/git TestVerifyHead", "reconcile/git TestKeysAreStrict"}},
		// Servers and tenants.
		{"Headgate verifies signatures if an ImageConfig demands them", []string{"reconcile/registry TestVerify", "reconcile/registry TestVerificationIsNotIgnored"}},
		{"Headgate reads only package metadata;", []string{"reconcile/registry TestPullsNothingElse"}},
		{"make Headgate use unbounded memory or disk", []string{"reconcile/registry TestHostileImages", "reconcile/registry TestItemsAreBounded", "reconcile/git TestFetchRefusesBombs", "reconcile/git TestTreeBomb"}},
		{"Headgate checks every Git object against its hash", []string{"reconcile/git TestReceiveDamage", "reconcile/git TestHostileServer"}},
		{"Headgate does not take over what another tool owns, unless the Sync adopts it", []string{"reconcile/ownership TestAdoption", "reconcile/cluster TestAdoption"}},
		{"make Headgate delete an object that it did not apply", []string{"reconcile/cluster TestCopies", "reconcile/cluster TestEveryCrashIsSurvived"}},
		{"Headgate stores none", []string{"fixtures/attack TestCanary"}},
		// Approvals.
		{"The author of a pull request cannot approve it", []string{"reconcile/forge TestApprovalsOnHubs", "reconcile/forge TestCommandsOnGitea", "fixtures/loop TestApproveInComment"}},
		{"of the target branch, and ignores the file of the pull request and the messages of its commits", []string{"reconcile/guard TestApprovedInGit", "reconcile/guard TestApprove"}},
		{"A pass reads the file of the commit that it applies", []string{"reconcile/guard TestApprovedInGit"}},
		{"approves if its user may write to the repository", []string{"reconcile/forge TestApprovalsOnHubs", "reconcile/forge TestNoApprovalsOnHubs"}},
		{"It names the digest and the head that its user saw, and counts for this target branch only", []string{"reconcile/forge TestMergesOnHubs", "reconcile/forge TestMergesOfTags", "reconcile/forge TestMergesOnGitea"}},
		{"and again after the merge.", []string{"reconcile/forge TestMergesOnHubs"}},
		{"If the forge does not answer, nothing is approved.", []string{"reconcile/forge TestApprovalsOnHubs", "reconcile/guard TestApprovedOnForge"}},
		{"A cluster uses an approval once.", []string{"reconcile/guard TestApprovalsCountOnce", "reconcile/cluster TestTwoProcessesAndOneApproval"}},
		{"the definitions that the preview listed", []string{"reconcile/guard TestApprovedFloodGrows"}},
		{"number of definitions and custom resources that the approver wrote", []string{"reconcile/guard TestApprovedFloodGrows", "reconcile/cluster TestObjectsDecide"}},
		{"What Headgate cannot count is approved as such.", []string{"reconcile/guard TestSchemas", "reconcile/guard TestCountOfAPackageThatIsReadInPart"}},
		{"Users are compared by ID, so another name makes no other user", []string{"reconcile/forge TestAuthors"}},
		{"A name in `approvals.approvers` is the user who has it when the process starts", []string{"reconcile/forge TestNamesOfListed", "reconcile/forge TestCommandsOnGitea"}},
		{"and never proves who owns an address", []string{"reconcile/forge TestCoauthorsProveNothing"}},
		{"could be the approver's, so no approval counts.", []string{"reconcile/forge TestNoApprovalsOnHubs"}},
		{"On these forges only the people in `approvals.approvers` approve", []string{"reconcile/forge TestApprovalsOfListed"}},
		// Statuses.
		{"A workflow posts only on the commit for which the forge started it", []string{"reconcile/forge TestRunOfWorkflow"}},
		{"cannot put its verdict on a newer one.", []string{"reconcile/forge TestSuperseded", "reconcile/forge TestSupersededPreview"}},
		{"preview for a comment only if a user who may write wrote a command;", []string{"examples TestGitHubActions", "examples TestGiteaActions"}},
		{"on GitHub, no token that can write is given to a job before that.", []string{"examples TestGitHubActions"}},
		{"A status is for a commit and its targets, and names them.", []string{"reconcile TestSharedHead", "fixtures/loop TestHeads"}},
		{"the status is pending until Headgate has previewed the new merge.", []string{"reconcile TestRetarget"}},
		{"posts an error for a target that it does not list.", []string{"reconcile/forge TestPreviewsOfTargets"}},
		{"its status is the worst verdict of those whose authors wrote the head or may write.", []string{"reconcile TestSharedHead", "reconcile TestSharedHeadWaits", "reconcile TestClosedDuringPreview"}},
		{"compares which kinds a package activates, and that Crossplane installs exactly this image", []string{"reconcile/guard TestAllowedActivations", "reconcile/guard TestPullPolicyOfAnotherManager"}},
		// Two processes.
		{"A sync is applied by the process that holds its lease.", []string{"reconcile/cluster TestOneWriter"}},
		{"A process reads the lease before each tier and after each slow answer", []string{"reconcile/cluster TestStolenLease", "reconcile/cluster TestStolenLeaseBeforeARepetition"}},
		{"not by the clock.", []string{"reconcile/cluster TestClocksDiffer", "reconcile/cluster TestTouchedLease"}},
		{"A process that has lost its lease sends nothing more.", []string{"reconcile/cluster TestLostLease", "reconcile/cluster TestStolenLease"}},
		{"an object that was deleted and made again in between is not adopted.", []string{"reconcile/cluster TestMadeAnewBeforeTheWrite", "reconcile/cluster TestMadeAnewInAPass"}},
		// Credentials.
		{"Headgate stores no credentials on disk, and masks values of Secrets in every output.", []string{"fixtures/attack TestCanary", "fixtures/situations TestCanary", "fixtures/situations TestCanaryOfReferences"}},
		{"connects only to hosts whose key `known_hosts` lists, and refuses any other key. It trusts none on first use.", []string{"reconcile/git TestHostKeys"}},
		{"and no agent, settings or keys of the user.", []string{"reconcile/git TestNothingOfTheUserOverSSH"}},
		{"Headgate sends a token only to the host that it is for.", []string{"reconcile/git TestFetchRedirected", "reconcile/registry TestRedirect", "reconcile/forge TestRedirects"}},
		{"The credentials of the kubeconfig follow no redirect to another host.", []string{"reconcile/network TestRedirectIsRefused"}},
		{"only if the repositories of all Syncs of a process are on one host.", []string{"reconcile/target TestDefaultPasswordIsForOneHost"}},
		{"Headgate sends credentials over plain HTTP only to this machine", []string{"reconcile/network TestPlain"}},
		{"Headgate connects to no link-local address and no metadata service.", []string{"reconcile/git TestMetadataServiceIsNoRepository", "reconcile/registry TestNoLinkLocal", "reconcile/forge TestMetadataServiceIsNoForge"}},
		{"It checks the resolved address of every connection.", []string{"reconcile/network TestControl"}},
		{"On behalf of a pull request, Headgate asks only the registries", []string{"reconcile/registry TestHeadReachesWhatItsTargetNames", "reconcile TestHeadIsFetchedWithinItsReach"}},
		{"They may redirect to public addresses only.", []string{"reconcile/registry TestHeadIsNotSentInside", "reconcile/registry TestPublic"}},
		{"It uses only the pull Secrets and keys that the target names.", []string{"reconcile/registry TestHeadUsesSecretsOfItsTarget"}},
		{"Headgate accepts webhooks only over TLS or from this machine", []string{"cmd/headgate TestListenWithTLS"}},
		{"It ignores a request without the right secret or signature.", []string{"reconcile/forge TestForgedWebhooks"}},
		// Messages.
		{"So no log, comment, status or report quotes it.", []string{"fixtures/attack TestCanary", "reconcile/registry TestTroubles", "reconcile/git TestFetchErrors"}},
		{"They show only plain words of its error lines", []string{"reconcile/git TestShowable"}},
		{"at most 4 KiB, without control characters, without the credentials of the request, and without the values of Secrets in it.", []string{"reconcile/cluster TestDiscreet"}},
		{"messages show only the name of the webhook.", []string{"reconcile/cluster TestDiscreet"}},
	},
	"examples/controller/security.md": {
		{"The NetworkPolicies of an installation open DNS, the ports 22, 443 and 6443", []string{"reconcile/install TestNetwork", "fixtures/controller TestNetworkToFlux"}},
		{"they are no boundary", []string{"reconcile/install TestShardsDoNotOverlap"}},
	},
	"reconcile/manual": {
		{"Every prune passes every guard.", []string{"reconcile/guard TestManyBesideExternal", "reconcile/guard TestApprovedPastOthers"}},
		{"and counts them again right before the delete.", []string{"reconcile/cluster TestPruneCountsOnceMore"}},
		{"Objects that it cannot count are in use.", []string{"reconcile/cluster TestUndiscoveredKindsAreInUse"}},
		{"Headgate reads the policies again right before it\napplies a package.", []string{"reconcile/cluster TestPoliciesAreReadAgainBeforeAPackage"}},
		{"nothing is\npruned, and no definition deactivated, while a create or an update failed", []string{"reconcile/guard TestEveryPairOfFailureAndPrune", "reconcile/guard TestSomePairsOfFailuresAndPrunes", "reconcile/target TestPrunesAwaitReplacements"}},
		{"so another failure does not change it.", []string{"reconcile/rounds TestApprovalOfUnfinished"}},
		{"if the API server names it at the start of a refusal;", []string{"reconcile/cluster/api TestGateOf", "reconcile/target TestBrokenWebhookIsPruned", "reconcile/guard TestRefusingPolicyIsDependedOn"}},
		{"if nothing of `rbac.authorization.k8s.io` failed, is held or waits.", []string{"reconcile/target TestBindingsArePruned"}},
		{"a create exceeds a quota until the old object is gone;", []string{"reconcile/rounds TestDeadlocks", "reconcile/target TestQuotaDeadlock"}},
		{"Such an object is *deleting*, not pruned.", []string{"reconcile/cluster TestPruneThatWaitsForAFinalizer", "reconcile/draft TestPhasesStayOwned"}},
		{"Headgate forgets its own one and leaves the new one alone.", []string{"reconcile/cluster TestMadeAnewAfterAPrune"}},
		{"because the API server serves it under two groups", []string{"reconcile/target TestServedTwice", "reconcile/rounds TestAppliedUnderAnotherIdentity"}},
		{"Headgate sends each delete with the UID and resourceVersion of the object that it checked.", []string{"reconcile/cluster TestDeleteWhatWasSeen"}},
		{"If\na commit does not render completely, Headgate writes nothing.", []string{"cmd/headgate TestClusterScripts"}},
		{"You can kill the process at any time; the next pass finishes the work.", []string{"reconcile/cluster TestEveryCrashIsSurvived", "reconcile/guard TestApprovalsCountOnce", "fixtures/situations TestEveryCrashOfAnApproval"}},
		{"a step that two guards hold passes once both are approved.", []string{"reconcile/guard TestApprovalLiftsOneReason"}},
		{"Each cluster uses an approval once, and using a part of it uses the whole.", []string{"reconcile/guard TestApprovalsCountOnce", "reconcile/guard TestApprovedInGit", "reconcile/forge TestTwoClusters"}},
		{"An entry that has expired counts in the first pass of a sync", []string{"reconcile/draft TestExpiredApprovals", "reconcile/draft TestExpiredApprovalOfAPrune"}},
		{"Headgate renders and applies only commits that a listed key has signed", []string{"reconcile TestUnverifiedCommit"}},
		{"Approvals in the rewritten branch itself do not count.", []string{"reconcile/guard TestHistoryIsApprovedByName"}},
		{"Headgate takes back what the commit sets, and renders the last applied commit again to know which fields left.", []string{"reconcile/cluster TestFieldsThatLeaveGit"}},
		{"Headgate removes a field that only Headgate manages.", []string{"reconcile/cluster TestTableOfEdits", "fixtures/situations TestUpdatesHaveALine"}},
		{"A release never deletes.", []string{"reconcile/cluster TestRelease", "reconcile/cluster TestReleaseHoldsWhatWouldDeleteIt", "reconcile/cluster TestEveryCrashOfARelease"}},
		{"A pass from another\nsource under the same name writes nothing, and names both sources", []string{"reconcile/cluster TestOtherSourceWritesNothing"}},
		{"If two processes apply two commits in turn, both stop for an hour, and name both commits.", []string{"reconcile/inventory TestTwoRevisionsInTurn", "reconcile/cluster TestTwoActors"}},
		{"It deletes none of them: the objects that are not in the commit are one hold with one digest.", []string{"reconcile/cluster TestRebuiltInventory", "reconcile/cluster TestRebuilt"}},
		{"Headgate does not accept copies that carry its marks.", []string{"reconcile/cluster TestCopies"}},
		{"or restores an older inventory, Headgate notices it", []string{"reconcile/cluster TestInventoryChangedByHand"}},
	},
	".site/compatibility.md": {
		{"A binary reads the inventories of all older formats, and refuses newer ones.", []string{"reconcile/cluster TestInventoryOfThePreviousRelease", "reconcile/cluster TestNewerFormat"}},
		{"An unknown field of a Sync is an error", []string{"reconcile/api TestDecodeIsStrict"}},
	},
	".site/support.md": {
		{"The manifests of [`run`](../examples/run) and [`observe`](../examples/observe) are applied to a whole API server in the tests", []string{"examples TestDeployment"}},
	},
	"examples/operate/README.md": {
		{"it waits 90 seconds for the lease before it writes", []string{"reconcile/cluster TestOneWriter"}},
		{"another one takes its lease over", []string{"reconcile/cluster TestClocksDiffer"}},
		{"the next pass rebuilds it from the marks on the objects. It deletes nothing", []string{"reconcile/cluster TestRebuiltInventory"}},
		{"a new one is made, and the Secrets are checked again", []string{"reconcile/cluster TestDigestsOfSecretsAreKeyed"}},
		{"A process that finds an inventory of a newer format writes nothing", []string{"reconcile/cluster TestNewerFormat"}},
		{"While the forge refuses a token, statuses wait and are posted with the new one.", []string{"reconcile/outbox TestRefusedToken"}},
		{"A pass that stopped with an error changes neither the counts nor the last success.", []string{"reconcile/metrics TestPasses"}},
		{"the 50 largest packages have their own label, the rest is `other`", []string{"reconcile/metrics TestCardinalityIsBounded"}},
	},
}

// TestPromises proves that the documents make each of these promises in these words, and that the tests of each exist.
func TestPromises(t *testing.T) {
	spaces := regexp.MustCompile(`\s+`)
	plain := func(text string) string { return spaces.ReplaceAllString(text, " ") }
	for name, promises := range promisesOf {
		document := plain(documentNamed(t, name))
		for _, p := range promises {
			if !strings.Contains(document, plain(p.text)) {
				t.Errorf("%s does not contain %q any more", name, p.text)
			}
			for _, test := range p.tests {
				if !existsTest(t, test) {
					t.Errorf("%s: %q: there is no test %s", name, p.text, test)
				}
			}
		}
	}
}

// documentNamed returns the text of a document, or of all documents below a folder.
func documentNamed(t *testing.T, name string) string {
	t.Helper()
	if strings.HasSuffix(name, ".md") {
		return readFile(t, name)
	}
	var b strings.Builder
	for page := range markdown(t) {
		if strings.HasPrefix(page, name+"/") {
			b.WriteString(readFile(t, page) + "\n")
		}
	}
	return b.String()
}

// existsTest reports whether a package has a test: "reconcile/git TestVerifyHead".
func existsTest(t *testing.T, test string) bool {
	t.Helper()
	in, name, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join(root(t), in, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if code, err := os.ReadFile(file); err == nil && strings.Contains(string(code), "func "+name+"(") {
			return true
		}
	}
	return false
}
