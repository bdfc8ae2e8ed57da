// Package words gives reasons their sentences: the core decides with codes and values, and every code has its wording here. It is pure.
package words

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Awaited describes what a step waits for.
func Awaited(s plan.Step) string {
	text, _ := awaited(sentencesOf(s.Waits))
	return text
}

// Of returns the text of a reason; "" for the zero Reason. If the values do not fit the wording of the code, the
// text begins with "%!", as in package fmt.
func Of(r reason.Reason) string {
	if r.None() {
		return ""
	}
	return words[r.Code].say(r)
}

// say formats a reason with the wording of its code.
func (w wording) say(r reason.Reason) string {
	if w.format == "" || len(r.Values) != len(w.forms) {
		return "%!" + r.String()
	}
	texts := make([]any, len(r.Values))
	for i, v := range r.Values {
		switch inner := v.(type) {
		case reason.Reason:
			v = sentencesOf([]reason.Reason{inner})
		case []reason.Reason:
			v = sentencesOf(inner)
		}
		text, fits := w.forms[i](v)
		if !fits {
			return "%!" + r.String()
		}
		texts[i] = text
	}
	return fmt.Sprintf(w.format, texts...)
}

// sentences are the texts of reasons.
type sentences []string

func sentencesOf(all []reason.Reason) sentences {
	texts := make(sentences, len(all))
	for i, r := range all {
		texts[i] = Of(r)
	}
	return texts
}

// words holds the wording of every code.
var words = map[reason.Code]wording{
	reason.Both:               say("%s; %s", explanation, explanation),
	reason.Failed:             say("%s", text),
	reason.AlsoHeld:           say("%s; also held by the guard %q: %s", explanation, text, explanation),
	reason.Approved:           say("approved past the guard %q: %s", text, explanation),
	reason.Unverified:         say("%s", text),
	reason.DependencyNotReady: say("%s", text),
	reason.AppliedMeanwhile:   say("%s", text),
	reason.Rewritten:          say("the branch was rewritten: this commit does not descend from %s, which was applied last; look at the changes and approve them, or push a commit that descends from it", commit),
	reason.NoHistory:          say("the source shows no history, so it is not known whether it follows %s, which was applied last; apply a commit of a Git repository, or approve the changes", commit),
	reason.OwnersUnknown:      say("not deleted: whether its CRD would go with it is not known: %s", explanation),
	reason.AwaitsCrossplane:   say("Crossplane to report that it is being deleted, so that its CRD stays (without Crossplane, remove the finalizer %s)", text),
	reason.NotGone:            say("not gone after %s: %s", text, explanation),

	reason.PackageInstalls:     say("%s is installed with it, and %s", text, explanation),
	reason.PackageInstallsMany: say("%s is installed with it, and %s; and so it is with %s more", text, explanation, count("definition")),

	reason.BothMakeCRDs:          say("Crossplane runs here, and this sync creates the CRDs too, so both would write them; set crdOwner: Crossplane"),
	reason.CrossplaneCame:        say("this sync created the CRDs so far, and Crossplane runs here now; set crdOwner: Crossplane to hand them over, which deletes nothing, or crdOwner: Headgate to keep creating them"),
	reason.CrossplaneLeft:        say("Crossplane created the CRDs so far, and its API is not served any more; install it again, or set crdOwner: Headgate to let this sync create them"),
	reason.OnlyMarked:            say("the inventory was lost, and only the marks on the object show that this sync applied it; approve the prune, or run 'headgate release --rebuilt' to keep such objects"),
	reason.AnotherUID:            say("only its marks show that this sync applied it, because its UID changed: a backup restored it, or a client created it again; approve the prune, or run 'headgate release' to keep it"),
	reason.RebuildsBeforeEnd:     say("a part of the inventory was lost and is being rebuilt; look at what is listed, and destroy once more"),
	reason.Rebuilds:              say("a part of the inventory was lost and is being rebuilt; the next pass decides"),
	reason.NothingWanted:         say("the commit declares nothing; check the path"),
	reason.NoDefinitions:         say("the commit declares no definition at all, and this sync owns CRDs; check the path"),
	reason.NoOwnDefinitions:      say("the commit declares no definition of its own, and this sync owns ManagedResourceDefinitions; check the path"),
	reason.DeletesExternal:       say("deleting it would delete the cloud resource behind it; set instances: Prune to allow that, or orphan it first"),
	reason.TooManyPrunes:         say("%s prunes in one pass are more than %s; raise maxPrunes if this is intended", number, number),
	reason.DefinitionLost:        say("the package in %s declared it as a definition in the last applied commit, and it is a plain CRD now, which Headgate creates regardless of policies; move it back, or list it in .headgateignore", text),
	reason.DirectoryNotPackage:   say("the directory %s was a package in the last applied commit and is no longer one; restore its crossplane.yaml, declare the directory in packages, list it in .headgateignore, or delete it", text),
	reason.DependantKept:         say("%s depends on it, and is kept", the),
	reason.DependantStays:        say("%s depends on it, and stays; declare this object again, or remove the dependency there", the),
	reason.UserStays:             say("%s must be pruned first, and stays; see the reason there", the),
	reason.InstalledByRevision:   say("the package revision %s installs it; the commit's copy is not applied", text),
	reason.OnlyCrossplaneWrites:  say("only Crossplane writes objects of kind %s, and this one would install a package that no preview has read; remove it from the repository, and declare the package instead", text),
	reason.UsageInCommit:         say("the %s of this commit protects it; remove that first, or declare the object again", object),
	reason.LabelledInUse:         say("a Crossplane Usage protects it (label %s); delete the Usage first", text),
	reason.UsagesNotRead:         say("Headgate has not checked whether a Crossplane Usage protects it"),
	reason.UsagesUnknown:         say("Headgate cannot check whether a Crossplane Usage protects it (%s)", explanation),
	reason.ProtectedByUsage:      say("the %s protects it; delete that first", text),
	reason.LabelWithoutUsage:     say("it is labelled %s, and no Usage names it; Crossplane takes the label off in a moment; if it stays, take it off by hand", text),
	reason.StillMade:             say("%s owns it, and keeps creating it; set crdOwner: Crossplane", text),
	reason.OwnedByAnother:        say("%s owns it; delete it there", text),
	reason.MadeForMRD:            say("Crossplane created it for the ManagedResourceDefinition %s, which the commit does not declare any more; declare that again, or delete the custom resources, approve its prune and delete the CRD by hand: the next pass creates it", text),
	reason.MarkMissing:           say("it lacks the mark of this sync; delete it by hand, or run 'headgate release'"),
	reason.NotProven:             say("it carries the marks of this sync, and nothing proves that Headgate applied it; delete it by hand, or run 'headgate release'"),
	reason.DriftRefused:          say("drift is reported, not corrected: %s", explanation),
	reason.DriftReported:         say("drift is reported, not corrected"),
	reason.ObservedRefused:       say("%s", explanation),
	reason.ObservedDiffers:       say("it differs from the commit; its management policy %s only observes it", text),
	reason.FightRests:            say("fight: "+fought+"; it is left alone for a while", textOr("another writer"), changed, number),
	reason.ApplyNotAllowed:       say("%s; add an entry to allowedKinds of the Sync, or take the object out of this repository", explanation),
	reason.PruneNotAllowed:       say("%s; add an entry to allowedKinds of the Sync, or run 'headgate release'", explanation),
	reason.KindNotListed:         say("allowedKinds does not list %s", text),
	reason.ScopeNotListed:        say("allowedKinds lists %s only in namespaces, and this object is in none (scope: Cluster)", text),
	reason.NamespaceNotListed:    say("allowedKinds does not list %s in the namespace %s", text, text),
	reason.NameNotListed:         say("allowedKinds does not list %s with the name %s", text, text),
	reason.PatternTooWide:        say("its pattern %q reaches beyond activation.allow of the Sync (%s); narrow the pattern", text, text),
	reason.PatternOpens:          say("its pattern %q reaches beyond activation.allow of the Sync (%s), for example to %s; narrow the pattern", text, text, text),
	reason.DefinitionOpens:       say("it would become active, and activation.allow of the Sync (%s) does not match its name; take out what activates it", text),
	reason.CRDOpens:              say("it would serve a kind, and activation.allow of the Sync (%s) does not match its name; take it out of this repository", text),
	reason.PackageOpens:          say("%s of it would become active that activation.allow of the Sync does not match, for example %s (allowed: %s); use a package with safe-start, and let no policy name more", count("definition"), text, text),
	reason.PackageShipsPolicy:    say("its policy %s has the pattern %q, which reaches beyond activation.allow of the Sync (%s); use another package", text, text, text),
	reason.PackageUnpinned:       say("activation.allow of the Sync needs the digest of the image, because a tag can move; write %s", text),
	reason.PackagePullsAlways:    say("activation.allow of the Sync does not allow packagePullPolicy: Always; remove it"),
	reason.PackageResolves:       say("Crossplane would choose its dependencies, and Headgate could not compare them with activation.allow of the Sync; set skipDependencyResolution: true, and add its dependencies to this repository"),
	reason.PackageDependsOn:      say("it depends on %s; add a package object for each of them to this repository, with a digest and skipDependencyResolution: true", text),
	reason.PackageNotJudged:      say("%s, so Headgate cannot compare what it activates with activation.allow of the Sync; let Headgate read the package", explanation),
	reason.RewritesImages:        say("its rewriteImage may have Crossplane install other packages in the whole cluster, which a Sync with activation.allow must not do; take it out of this repository"),
	reason.BehindPackages:        say("an object of kind %s has Crossplane install packages that Headgate cannot compare with activation.allow of the Sync; take it out of this repository", text),
	reason.ActivationUnchecked:   say("Headgate cannot compare it with activation.allow of the Sync: %s", text),
	reason.PolicyKeeps:           say("its management policy %s asks for it", text),
	reason.AnnotationKeeps:       say("its annotation %s: %s asks for it", text, text),
	reason.LabelKeeps:            say("its label %s: %s asks for it", text, text),
	reason.AsksToReplace:         say("%s: %s in the commit asks to replace it, which Headgate never does; remove that setting, and delete the object by hand if a field of it cannot change", text, text),
	reason.AsksNotToCreate:       say("%s: %s in the commit asks not to make it", text, text),
	reason.AnnotationAsksToLeave: say("its annotation %s: %s asks not to update it", text, text),
	reason.LabelAsksToLeave:      say("its label %s: %s asks not to update it", text, text),
	reason.CommitAsksToLeave:     say("%s: %s in the commit asks not to update it", text, text),
	reason.TakenOverBySync:       say("the sync %s declares it, and is to take it over", text),
	reason.MovedAway:             say("it moved to the sync %s, as its annotation announced; remove it from this commit", text),
	reason.WrittenByHeadgate:     say("it is %s, which only Headgate itself writes; remove it from the repository", text),
	reason.HoldsInventory:        say("the inventory of this sync lives in it"),
	reason.TakesController:       say("it belongs to the controller of Headgate, and this sync did not create it; remove it from the repository"),
	reason.KeepsController:       say("it belongs to the controller of Headgate, which no sync deletes"),
	reason.NeverPruned:           say("it is %s, which is never pruned", text),
	reason.PausedPrune:           say("a user paused it in the cluster (%s); remove the annotation to let Headgate go on", text),
	reason.PausedUpdate:          say("a user paused it in the cluster (%s); remove the annotation to let Headgate go on", text),
	reason.WantedInside:          say("the commit still wants %s in it; declare the namespace again, or move that", object),
	reason.StaysInside:           say("%s in it stays, and would be deleted with it; see the reason there", object),
	reason.LivePolicyNames:       say("it is not deactivated: the policy %s in the cluster names it; %s", text, explanation),
	reason.NoRevision:            say("it is not deactivated: no package revision controls it, so nothing would bring the definition back"),
	reason.RevisionInactive:      say("it is not deactivated: its package revision %s is not active, so nothing would bring the definition back", text),
	reason.NoSafeStart:           say("it is not deactivated: its package %s has no safe-start, so Crossplane would activate it again", text),

	reason.WildcardsActivateMany:      say("its wildcards would activate %s definitions at once, more than %s, for example %s; name the definitions in full, or raise maxActivations", number, number, text),
	reason.ShippedPolicyActivatesMany: say("its policy %s would activate %s definitions at once, more than %s, for example %s; raise maxActivations if this is intended", text, number, number, text),
	reason.LivePolicyActivatesUnnamed: say("the policy %s in the cluster would activate %s of it that no policy of the commit names, for example %s; %s", text, count("definition"), text, explanation),
	reason.PackageActivatesMany:       say("%s of its definitions would become active at once, more than %s, for example %s; name the definitions in full, or raise maxActivations", number, number, text),
	reason.LivePolicyActivatesAll:     say("the policy %s in the cluster activates every definition that it brings; %s", text, explanation),
	reason.PolicyActivatesMany:        say("wildcards of the policy %s would activate %s definitions at once, more than %s; name the definitions in full, or raise maxActivations", text, number, number),
	reason.DirectoryActivatesMany:     say("%s definitions of the package in %s would become active at once, more than %s; name the definitions in full, or raise maxActivations", number, text, number),
	reason.LivePolicyActivatesIt:      say("the policy %s in the cluster would activate it, and no policy of the commit names it; %s", text, explanation),
	reason.NarrowPolicy:               say("narrow or delete that policy first"),
	reason.DeleteDefaultPolicy:        say("delete that policy, and set Crossplane's Helm value provider.defaultActivations to []; otherwise Crossplane creates it again at its next start"),
	reason.WildcardOverUnread:         say("%s, so Headgate cannot count the definitions of it that %q would activate; let Headgate read the package, name the definitions in full, or wait until it is installed", explanation, text),
	reason.UnreadUnderWildcard:        say("%s, so Headgate cannot count the definitions of it that %q of the policy %s would activate; let Headgate read the package, or name the definitions in full", explanation, text, text),
	reason.PackageUnreadable:          say("%s", text),
	reason.PackageNotRead:             say("Headgate has not read %s %s", text, text),

	reason.ScopeChanges:         say("its scope would change from %s to %s, which "+refuses, text, text, text),
	reason.NameChanges:          say("its %s would change from %s to %s, which "+refuses, text, textOr("nothing"), textOr("nothing"), text),
	reason.RulesRefused:         say("%s %s; correct the rule, or keep the version that has none", text, text),
	reason.StoredVersionLeaves:  say(leaves+migrate, list, text, text),
	reason.StorageVersionLeaves: say(leaves+", with %[3]s as the storage version"+migrate, list, text, text),

	reason.WebhookUnseen:      say("its conversion webhook is dropped; whether objects are stored in another version is not known without a cluster"),
	reason.VersionsUnseen:     say("it declares fewer versions; whether objects are stored in one that goes is not known without a cluster"),
	reason.StoredNotRead:      say("Headgate has not read in which versions objects are stored"),
	reason.StoredUnknown:      say("its versions, or its conversion webhook, would go, and Headgate cannot read in which versions objects are stored (%s)", explanation),
	reason.WebhookStillNeeded: say("its conversion webhook would be dropped, and objects may be stored in %s, which could then not be read: set conversion: Inject, or migrate them to %s and take it out of status.storedVersions", list, text),

	reason.BreaksUnseen:       say("its schema breaks: %s; whether custom resources exist is not known without a cluster, and a pass holds it if any do", breaks),
	reason.BreaksUncounted:    say("its schema breaks: %s; Headgate has not counted the custom resources", breaks),
	reason.BreaksUncountable:  say("its schema breaks: %s; custom resources cannot be counted (%s), so it counts as in use", breaks, explanation),
	reason.BreaksInUse:        say("its schema breaks: %s; %s%s: change them first, or approve this%s", breaks, exist("custom resource"), example, beforehand),
	reason.BreaksInUseUnknown: say("%s; they cannot be looked at (%s)", explanation, explanation),
	reason.BreaksObjects:      say("its schema breaks: %s; %s: change them first, or approve this", breaks, explanation),
	reason.BreaksNoObject:     say("its schema breaks: %s; %s, and none loses a value or is refused", breaks, exist("custom resource")),
	reason.LosesField:         say("%s of %s set %s, which is lost, for example %s", number, number, text, text),
	reason.IsRefused:          say("%s of %s are refused (%s), for example %s", number, number, text, text),
	reason.MoreMisfits:        say("and %s more reasons", number),

	reason.UsersGoFirst:          say("%s of it go first", count("object")),
	reason.DeletesObjects:        say("%s would be deleted with it%s; delete them first", count("live object"), example),
	reason.BreaksUsers:           say("%s would be broken without it%s; have them use another one, or delete them first", count("live object"), example),
	reason.DeletesOrBreaksUsers:  say("%s would be deleted, or broken, without it%s; delete them first", count("live object"), example),
	reason.DeletesForeignObjects: say("%s in it would be deleted with it%s; move or delete them first", count("foreign object"), example),
	reason.UsersUnseen:           say("what would be deleted with it is not known without a cluster; a pass holds it if there is anything"),
	reason.UsersNotCounted:       say("Headgate has not counted what would be deleted with it"),
	reason.UsersUnknown:          say("what would be deleted with it cannot be counted (%s), so it counts as in use", explanation),

	reason.MergeBreaks:         say("the schema of %s breaks, and may be in use", text),
	reason.MergeUnconverted:    say("nothing converts the objects of %s", text),
	reason.MergeStorage:        say("objects that %s stores may become unreadable", text),
	reason.MergeBreaksUnused:   say("breaks the unused schema of %s", text),
	reason.MergeBreaksNoObject: say("breaks for no existing object the schema of %s", text),
	reason.MergeBreaksStatus:   say("breaks the status, which nothing here reads, of %s", text),
	reason.MergePattern:        say("changes the pattern of %[2]s of %[1]s, which may refuse more", text, text),
	reason.MergeDefault:        say("changes the default of %[2]s of %[1]s", text, text),
	reason.MergeSharing:        say("merges %[2]s of %[1]s in another way", text, text),
	reason.MergeDeprecates:     say("deprecates %[2]s of %[1]s", text, text),
	reason.MergeMovesStorage:   say("stores %[1]s in %[2]s", text, text),
	reason.UsedInCommit:        say("the commit uses %s", text),
	reason.UnusedInCommit:      say("nothing in the commit uses %s", text),
	reason.InactiveBreaks:      say("%s breaks or goes, and is inactive", text),
	reason.DropsKind:           say("the new version of its package does not contain %s, which may be in use", text),
	reason.DropsUnusedKind:     say("drops the unused kind %s", text),
	reason.DeletesKind:         say("%s is deleted, and it is not known whether objects exist", text),
	reason.DeletesObject:       say("deletes %s", called),
	reason.DeactivatesKind:     say("deactivates %s", text),
	reason.NotJudged:           say("changes %[2]s%[3]s of %[1]s", called, fieldChange, moreFields),
	reason.NameInCloudChanges:  say("changes "+crossplane.ExternalName+" (%[2]s → %[3]s) of %[1]s", called, text, textOr("none")),
	reason.ComposesInactive:    say("%s composes %s, which is inactive", called, text),
	reason.ComposesInstead:     say("%s composes %s instead of %s", called, several, several),
	reason.ComposesToo:         say("%s composes also %s", called, several),
	reason.ComposesNoMore:      say("%s composes no %s any more", called, several),
	reason.AddsComposition:     say("adds %s of %s", called, text),
	reason.DeletesComposition:  say("deletes %s of %s", called, text),
	reason.ChangesComposition:  say("changes %s of package %s", called, imageName),
	reason.GrantsRole:          say("grants %[2]s to %[3]s with %[1]s", called, text, several),
	reason.GrantsRules:         say("grants rights with %s", called),
	reason.AddsRights:          say("adds %s, which grants rights", called),
	reason.AddsRunner:          say("adds %s, which runs or makes what it describes", called),
	reason.AddsObject:          say("adds %s", called),
	reason.HasKey:              say("sets %[2]s (%[3]s) on the new %[1]s", called, text, text),
	reason.ChangesKey:          say("changes %[2]s (%[3]s) of %[1]s", called, text, text),
	reason.ChangesAsking:       say("changes %[2]s of %[1]s", called, text),
	reason.SkipsObject:         say("skips %s (%s)", called, text),
	reason.SkipsFromNow:        say("does not apply %s any more (%s)", called, text),
	reason.AddsWildcard:        say("adds %s to policy %s", text, text),
	reason.TrustedVersion:      say("installs %s %s → %s", text, versionText, versionText),
	reason.UntrustedVersion:    say("installs %s %s → %s (%s)", text, versionText, versionText, text),
	reason.NewPackage:          say("installs %s %s, which is new", text, versionText),
	reason.OtherSource:         say("installs %[1]s from %[3]s instead of %[2]s", called, text, text),
	reason.MergeUnread:         say("the changes of package %s are not known: %s", text, text),
	reason.MergeBaseUnread:     say("package %s could not be read before this commit: %s", text, text),
	reason.ActivatesNamed:      say("activates %s", text),
	reason.ActivatesUnnamed:    say("activates by a wildcard %s", text),
	reason.StaysUnnamed:        say("keeps active without a policy %s", text),
	reason.DropsSignature:      say("%s", text),
	reason.SchemasUnconfirmed:  say("only this commit keeps the schemas of package %s, which no registry confirms", text),
	reason.ControlledByAnother: say("another revision of %s than the active one controls %s that it installed, for example %s; some versions of Crossplane do not finish an upgrade then", text, count("object"), text),
	reason.ControlUnknown:      say("it is not known whether the active revision of %s controls what it installed: %s", text, explanation),
	reason.FirstForCrossplane:  say("%s %s is the first object here for Crossplane's package manager, so Crossplane makes the CRDs in a new cluster; where %s has made them, it still does, as shown here", text, text, text),
	reason.LastForCrossplane:   say("%s %s was the last object here for Crossplane's package manager, so Headgate makes the CRDs in a new cluster; where %s has made them, it still does, as shown here", text, text, text),

	reason.LeftToPackage:   say("Crossplane is to install it with package %s (%s), and has not taken it over yet", text, origin),
	reason.MayStillBeThere: say("the inventory does not record which file it came from; the commit still contains %s, which may be it, and Headgate skips that: %s; delete the object by hand if it is to go", origin, text),
	reason.StillThere:      say("it came from %s, which the commit still contains and Headgate skips: %s; delete that if the object is to go", origin, text),
	reason.StillElsewhere:  say("it was applied from %s and may have moved to %s, which Headgate skips: %s; delete that if the object is to go", text, origin, text),

	reason.NotAllLookedAt:   say("none of the first %s loses or is refused anything, and there are more", number),
	reason.CountTooLong:     say("counting took longer than %s", text),
	reason.CountForbidden:   say("forbidden: %s", text),
	reason.MadeAnew:         say("another object has its name since it was observed, so it was left alone"),
	reason.ChangedMeanwhile: say("it changed after it was observed, so it was left alone"),

	reason.ProtectedMeanwhile: say("a Crossplane Usage protects it meanwhile (%s), so it was not deleted", explanation),
	reason.UncountableNow:     say("what would be deleted with it cannot be counted any more (%s), so it was not deleted", explanation),
	reason.UsedMeanwhile:      say("%s objects that appeared meanwhile would be deleted with it, for example %s, so it was not deleted", number, text),
	reason.AnExample:          say("%s", text),
	reason.LivePolicyWider:    say("not sent: the policy %s in the cluster activates %q, which this pass did not expect; the next pass counts again", text, text),

	reason.NotThere:             say("it is not in the cluster yet"),
	reason.NotBrought:           say("no package has brought this definition yet"),
	reason.WasDeleted:           say("it was deleted"),
	reason.CRDNotServed:         say("%s: the CRD %s was applied and is not served: %s", text, text, explanation),
	reason.BeingDeleted:         say("it is being deleted"),
	reason.FieldsMigrated:       say("its managed fields were migrated; the next pass applies it"),
	reason.StatusMessage:        say("%s", text),
	reason.HealthCheck:          say("%s", text),
	reason.StatusIs:             say("it is %s", text),
	reason.ConditionIs:          say("%s is %s: %s", text, text, text),
	reason.ConditionNotTrue:     say("its condition %s is not true yet", text),
	reason.ConditionNotReported: say("the API server does not report yet whether it is %s", text),
	reason.PausedByUser:         say("a user paused it in the cluster (%s)", text),
	reason.NotActivated:         say("Crossplane has not activated it yet"),
	reason.Blocked:              say("blocked: %s", text),
	reason.BlockedSilently:      say("blocked: Crossplane gives no reason; look at the events of the definition"),
	reason.CRDApplied:           say("Crossplane has applied its CRD: %s", explanation),
	reason.Establishing:         say("Crossplane is establishing its CRD"),
	reason.NotLookedAt:          say("Crossplane has not reconciled it yet"),
	reason.VersionNotLookedAt:   say("Crossplane has not reconciled this version yet"),
	reason.Installing:           say("Crossplane is installing it"),
	reason.PendingTooLong:       say("not after %s: %s", text, explanation),
	reason.DeletingCRD:          say("its CRD is being deleted"),
	reason.ComesBack:            say("it is to come back inactive"),
	reason.CRDGoes:              say("its CRD is to go"),
	reason.CrossplaneDeletesCRD: say("Crossplane is to delete its CRD"),
	reason.RevisionRestores:     say("its package revision %s is to bring it back, inactive", text),
	reason.NameNotThere:         say("its name comes from %s, which is not there (%s)", explanation, origin),
	reason.NotMade:              say("it does not exist, and its management policy %s does not allow its creation (%s)", text, origin),
	reason.RefusedIfSent:        say("%s", explanation),
	reason.DiffersUnowned:       say("it differs from the commit, and its owner is not known"),
	reason.AbsentUnowned:        say("no tool has applied it, and its owner is not known"),
	reason.NotUpdated:           say("%s has not applied the version of this commit", text),
	reason.NotCreated:           say("%s has not applied it", text),
	reason.CreateNeedsCRD:       say("%s has not applied it; it needs the CRD %s", text, text),
	reason.CreateWaits:          say("%s has not applied it; it waits for %s", text, awaited),

	reason.Object:           say("%s", the),
	reason.Field:            say("the field %s of %s", text, the),
	reason.AwaitsHeld:       say("%s, which the guard %q holds", explanation, text),
	reason.AwaitsNowhere:    say("%s, which is neither in this commit nor in the cluster; apply it, or do not name it at %s", explanation, origin),
	reason.AwaitsAbsent:     say("%s, which is not there", explanation),
	reason.AwaitsUnready:    say("%s, which is not ready: %s", explanation, explanation),
	reason.AwaitsSync:       say("the sync %s to render this commit, which may declare it there", text),
	reason.AwaitsBrokenSync: say("the sync %s to render this commit, which may declare it there (%s)", text, text),
	reason.AwaitsDependant:  say("%s to be gone, which depends on it", the),
	reason.AwaitsUpdate:     say("%s, which depends on it until it is updated", the),
	reason.AwaitsRelease:    say("%s to be released first", object),
	reason.AwaitsGone:       say("%s to be gone", the),
	reason.AwaitsOwnEnd:     say("its deletion to end, after which it is created again: %s", explanation),
	reason.AwaitsMore:       say("%s more", number),
	reason.DependencyFailed: say("not sent: it depends on %s, which was not applied", the),
	reason.DependantFailed:  say("not deleted: %s depends on it and was not deleted", the),
	reason.AwaitsCRD:        say("the CRD %s", text),
	reason.PackageMayServe:  say("%s, which may bring the kind %s", the, text),
	reason.PackagesMayServe: say("one of the packages %s, which may bring the kind %s", list, text),
	reason.CRDHeld:          say("the CRD %s, which the guard %q holds", text, text),
	reason.PolicyHeld:       say("the policy %s, which activates it and is not written (guard %q)", text, text),
	reason.SourceAbsent:     say("%s (%s)", explanation, origin),
	reason.SourceUnreadable: say("%s, which cannot be read: %s (%s)", explanation, text, origin),
	reason.FieldAbsent:      say("%s, which does not have it (%s)", explanation, origin),
	reason.FieldAmbiguous:   say("%s, which matches %s fields (%s)", explanation, number, origin),
	reason.FieldNotCopied:   say("%s, which cannot be copied (%s)", explanation, origin),
	reason.FieldUnfit:       say("%s cannot be copied to %s: %s", explanation, text, text),

	reason.KindInactive:     say("no API serves the kind %s: the definition %s would, and nothing activates it; name it in a policy", text, text),
	reason.CrossplaneAbsent: say("no API serves the kind %s, because Crossplane is not installed in this cluster; install it with its Helm chart, or declare its Helm release in this repository", text),
	reason.CrossplaneComes:  say("Crossplane, which %s installs, to serve the kind %s", the, text),
	reason.KindNowhere:      say("no API serves the kind %s, and nothing in this commit brings it", text),
	reason.KindHidden:       say("no API serves the kind %s, so it is not known whether the object exists, and the inventory keeps it: %s", text, explanation),
	reason.KindUnreadable:   say("the objects of the kind %s cannot be read, so nothing is done to them: %s", text, explanation),
	reason.ObjectUnreadable: say("it cannot be read, so nothing is done to it: %s", explanation),
	reason.CRDTerminating:   say("the CRD %s exists and is not served; it is being deleted", text),
	reason.CRDServesNothing: say("the CRD %s exists and is not served: no version of it has served: true", text),
	reason.CRDRefused:       say("the CRD %s exists and is not served: %s", text, text),
	reason.CRDNotYetServed:  say("the CRD %s exists and is not served yet", text),
	reason.APIServiceEmpty:  say("the APIService %s exists, and its API server does not list the kind", text),

	reason.NamespaceNotEmpty: say("not deleted: %s in it stays, and would be deleted with it", object),
	reason.StillFails:        say("the %s failed%s, and may replace it or still need it; correct that, or approve the prune", brief, since),
	reason.StillHeld:         say("the %s is held%s, and may replace it or still need it; act on that hold, or approve the prune", brief, since),
	reason.StillWaits:        say("the %s waits%s, and may replace it or still need it", brief, since),
	reason.ServedTwice:       say("it is the %s of this commit, served under two groups; only its old identity is forgotten", brief),
	reason.NotSentInTime:     say("not sent: after %s it still waits for %s", text, awaited),
	reason.NotDeletedInTime:  say("not deleted: after %s it still waits for %s", text, awaited),

	reason.NotAdopted:  say("it was there before, and this sync does not adopt (adoption: Refuse); delete it, or set adoption: AdoptIfUnowned"),
	reason.MadeByOther: say("%s owns it; take it out of this repository", text),
	reason.OwnedBySync: say("%s owns it, and its inventory still holds it; take it out of there, or out of this repository", text),
	reason.OwnedByTool: say("%s owns it; take it out of there, or out of this repository, or set adoption: Adopt", text),

	reason.ReleaseListed:    say("release of the Sync lists it"),
	reason.ReleaseAnnounced: say("its annotation %s: %s asks for it", text, text),
	reason.ReleaseBegun:     say("its release was begun before"),
	reason.ReleaseByHand:    say("a user asked for it"),
	reason.OwnedElsewhere:   say("%s owns it, and this sync gives it up", text),

	reason.StillReconciled:   say("%s still reconciles it; suspend that, or take the object out of it without pruning, or take it out of this repository", text),
	reason.ReconcilerUnknown: say("%s owns it, and it cannot be read whether that still reconciles it (%s)", text, text),

	reason.ActivationFinal:  say("no policy names it any more; activation is final"),
	reason.LeftByDefinition: say("Crossplane created it from a definition of this sync that was deleted; nothing updates it. Delete it if nothing needs it, or set deactivation: WhenUnused"),
	reason.PolicyPaused:     say("the policy %s, which names it, is paused", text),
	reason.DefinitionPaused: say("its definition is paused"),
	reason.ReturnsInactive:  say("Crossplane brings the definition back inactive, and its CRD goes if nothing uses it by then"),
	reason.BecomesInactive:  say("the definition becomes inactive, and Crossplane deletes its CRD"),
	reason.NothingActivates: say("nothing activates its definition"),
	reason.OnlyLookedAt:     say("its management policy %s only observes it", text),
	reason.LeftToApplier:    say("this sync only observes; %s applies it", textOr("another tool")),

	reason.DeletionUnknown:      say("its deletion was requested, and Headgate cannot see whether it is over: %s", text),
	reason.NotDeleting:          say("it is not being deleted"),
	reason.Deleting:             say("deletion started at %s", text),
	reason.DeletingInstances:    say("deletion started at %s; its custom resources are deleted first", text),
	reason.DeletingFinalizers:   say("deletion started at %s and waits for finalizer %s; check the controller that owns it", text, list),
	reason.DeletingByCrossplane: say("deletion started at %s and waits for finalizer %s, which Crossplane or a provider removes; if they do not run any more, install them again, or remove the finalizer by hand, which leaves external resources behind without an owner", text, list),
	reason.DeletingContents:     say("deletion started at %s; its contents are deleted first", text),

	reason.NotUpdatedAnyMore:    say("the new version does not hold it: it stays as it is, and nothing updates it"),
	reason.KindDropped:          say("the new version does not hold it: its objects stay, and no controller reconciles them"),
	reason.ObjectsNotCounted:    say("its custom resources cannot be counted (%s)", explanation),
	reason.ObjectsExist:         say("%s%s", exist("custom resource"), example),
	reason.NoObjects:            say("no custom resource exists"),
	reason.ManagedFieldsMigrate: say("its managed fields name %s, which is no longer served: they are migrated, and only then the API server can apply it", list),
	reason.FinalizerLeft:        say("a finalizer of Headgate is left from a pass that was going to delete it"),
	reason.TakenOver:            say("Headgate takes it over from %s", text),
	reason.FieldsTakenOver:      say("Headgate takes over %s that the commit sets from %s", count("field"), list),
	reason.FieldsReclaimed:      say("its managed fields do not name Headgate any more: it takes back %s from %s", count("field"), list),
	reason.FieldsUnknown:        say("what the last applied commit set is not known (%s), so these fields without a known manager stay: %s", explanation, few),
	reason.FieldsStay:           say("gives up %s; %s", few, keeper),
	reason.FieldsGained:         say("only manages %s from now on; no value changes", list),
	reason.VersionManaged:       say("only manages its fields as %s from now on; no value changes", text),
	reason.NoValueChanges:       say("no value changes: only the way in which the commit writes it"),
	reason.NotInSource:          say("the source does not have that commit, or it declared another object"),
	reason.LeftBehind:           say("%s left behind: %s", count("field"), list),
	reason.LeftoversMoved:       say("another writer changes %s at the moment", object),
	reason.LeftoversGo:          say("it loses %s that %s left behind", count("field"), list),
	reason.NotNamed:             say("no policy names it any more"),
	reason.RevisionTouched:      say("it is touched, so that Crossplane brings %s back, inactive", count("definition")),
}

// Texts that several wordings share.
const (
	fought  = "%s %s again %s times after Headgate corrected it"
	refuses = "the API server refuses while the %s exists. Revert that, or delete the definition once nothing uses it"
	leaves  = "it no longer declares %[1]s, which status.storedVersions of the CRD %[2]s names: objects may be stored in it. Declare %[1]s again"
	migrate = ". Then write every object back unchanged (kubectl get %[2]s -A -o yaml | kubectl replace -f -), and take the version out of the status: " +
		`kubectl patch crd %[2]s --subresource=status --type=merge -p '{"status":{"storedVersions":["%[3]s"]}}'`
)

// OfFight returns the text of a fight: "kubectl-edit changed data.k again 4 times …".
func OfFight(f facts.Fight) string {
	r := reason.FightRests.With(f.Manager, f.Path, f.Times)
	return wording{fought, words[r.Code].forms}.say(r)
}

// OfUndone describes why a prune waits for creates and updates; "" if it does not.
func OfUndone(why reason.Reason) string {
	format, waits := map[reason.Code]string{reason.StillFails: "%s failed%s", reason.StillHeld: "%s is held%s", reason.StillWaits: "%s waits%s"}[why.Code]
	if !waits {
		return ""
	}
	return wording{format, words[why.Code].forms}.say(why)
}

// OfError returns the text of an error for users.
func OfError(err error) string {
	if p, ok := errors.AsType[reason.CodedError](err); ok {
		return Of(p.Reason)
	}
	return legible.Text(err.Error())
}

// A wording inserts every value of a reason into a format, each with its own form.
type wording struct {
	format string
	forms  []form
}

func say(format string, forms ...form) wording { return wording{format, forms} }

// A form formats one value. It reports false for a value of another type.
type form func(value any) (string, bool)

// reason formats another reason, or several.
func explanation(value any) (string, bool) {
	all, fits := value.(sentences)
	return strings.Join(all, "; "), fits
}

// awaited formats the reasons why a step waits.
func awaited(value any) (string, bool) {
	all, fits := value.(sentences)
	return strings.Join(all, ", and for "), fits
}

// text formats a string.
func text(value any) (string, bool) {
	s, fits := value.(string)
	return legible.Text(s), fits
}

// textOr formats a string that may be missing.
func textOr(otherwise string) form {
	return func(value any) (string, bool) {
		s, fits := value.(string)
		return cmp.Or(legible.Text(s), otherwise), fits
	}
}

// changed formats a field that another writer changed. "" means that the writer deleted the object.
func changed(value any) (string, bool) {
	path, fits := value.(string)
	if path == "" {
		return "deleted it", fits
	}
	return "changed " + path, fits
}

// origin formats a place in the commit.
func origin(value any) (string, bool) {
	o, fits := value.(manifest.Origin)
	return o.String(), fits
}

// mostBreaks is the maximum number of schema changes in a reason.
const mostBreaks = 3

// breaks formats schema changes.
func breaks(value any) (string, bool) {
	all, fits := value.([]plan.SchemaChange)
	var texts []string
	for i, b := range all {
		if i == mostBreaks {
			texts = append(texts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		texts = append(texts, b.String())
	}
	return strings.Join(texts, ", "), fits
}

// few formats the first fields of a list.
func few(value any) (string, bool) {
	const most = 8
	fields, fits := value.([]string)
	if len(fields) > most {
		return fmt.Sprintf("%s, and %d more", strings.Join(fields[:most], ", "), len(fields)-most), fits
	}
	return strings.Join(fields, ", "), fits
}

// keeper formats the field manager that keeps a field.
func keeper(value any) (string, bool) {
	switch manager, fits := value.(string); manager {
	case "":
		return "the API server sets a default", fits
	case plan.UnknownManager:
		return "another writer changed it, so it stays", fits
	default:
		return legible.Text(manager) + " keeps it", fits
	}
}

// beforehand formats the versions that leave a definition, if any: what to do before they leave.
func beforehand(value any) (string, bool) {
	versions, fits := value.([]string)
	if len(versions) == 0 {
		return "", fits
	}
	return fmt.Sprintf(". Before %s leaves, have every client use another version, and every tool that applies its objects apply them in that: "+
		"the API server refuses to apply an object whose managed fields name a version that left. Headgate migrates those of the objects that it applies itself",
		strings.Join(versions, ", ")), fits
}

// number formats an integer.
func number(value any) (string, bool) {
	n, fits := integer(value)
	return fmt.Sprint(n), fits
}

func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// count formats the number of things: "1 object", "2 objects".
func count(noun string) form {
	return func(value any) (string, bool) {
		n, fits := integer(value)
		return manifest.Count(n, noun), fits
	}
}

// exist formats a number with a verb: "1 object exists", "2 objects exist".
func exist(noun string) form {
	return func(value any) (string, bool) {
		n, fits := integer(value)
		if n == 1 {
			return "1 " + noun + " exists", fits
		}
		return manifest.Count(n, noun) + " exist", fits
	}
}

// example formats an example that may be missing.
func example(value any) (string, bool) {
	s, fits := value.(string)
	if s != "" {
		s = ", for example " + s
	}
	return s, fits
}

// object formats an object.
func object(value any) (string, bool) {
	id, fits := value.(manifest.ID)
	return id.String(), fits
}

// called formats an object as a person calls it.
func called(value any) (string, bool) {
	id, fits := value.(manifest.ID)
	switch {
	case crossplane.IsMRAP(id):
		return "policy " + id.Name, fits
	case id.IsCRD(), crossplane.IsMRD(id), crossplane.IsXRD(id):
		return id.Name, fits
	}
	return legible.Text(id.Brief()), fits
}

// several formats the first of several texts, and counts the others.
func several(value any) (string, bool) {
	all, fits := value.([]string)
	switch n := len(all); {
	case n == 0:
		return "nothing", fits
	case n < 3:
		return legible.Text(strings.Join(all, " and ")), fits
	default:
		return legible.Text(fmt.Sprintf("%s and %d more", all[0], n-1)), fits
	}
}

// The maximum lengths of a path and of a value in a headline.
const (
	mostOfPath  = 60
	mostOfValue = 40
)

// fieldChange formats the change of a field, with its values if they are short.
func fieldChange(value any) (string, bool) {
	c, fits := value.(diff.Change)
	path := c.Path
	for len(path) > mostOfPath {
		_, path, _ = strings.Cut(path, ".")
		if len(path) <= mostOfPath {
			path = "…" + path
		}
	}
	from, to := strings.Trim(c.From, `"`), strings.Trim(c.To, `"`)
	if from+to == "" || len(from) > mostOfValue || len(to) > mostOfValue {
		return legible.Text(path), fits
	}
	return legible.Text(fmt.Sprintf("%s (%s → %s)", path, cmp.Or(from, "none"), cmp.Or(to, "none"))), fits
}

// moreFields counts further fields.
func moreFields(value any) (string, bool) {
	n, fits := integer(value)
	if n == 0 {
		return "", fits
	}
	return " and " + manifest.Count(n, "more field"), fits
}

// versionText formats a version, of which a digest is too long to read.
func versionText(value any) (string, bool) {
	s, fits := value.(string)
	if crossplane.IsDigest(s) {
		s = s[:len("sha256:")+12]
	}
	return cmp.Or(legible.Text(s), "an unknown version"), fits
}

// imageName formats the reference of an image by its last part.
func imageName(value any) (string, bool) {
	s, fits := value.(string)
	return legible.Text(crossplane.ImageName(s)), fits
}

// brief formats an object for use after an article.
func brief(value any) (string, bool) {
	id, fits := value.(manifest.ID)
	return id.Brief(), fits
}

// since formats the time of a beginning that may not be known.
func since(value any) (string, bool) {
	at, fits := value.(metav1.Time)
	if at.IsZero() {
		return "", fits
	}
	return " since " + at.UTC().Format("2 Jan 15:04"), fits
}

// the formats an object for use inside a sentence: "the Secret team/token".
func the(value any) (string, bool) {
	id, fits := value.(manifest.ID)
	return "the " + id.Brief(), fits
}

// commit formats the ID of a commit.
func commit(value any) (string, bool) {
	id, fits := value.(string)
	return fmt.Sprintf("%.12s", id), fits
}

// list formats strings as a comma-separated list.
func list(value any) (string, bool) {
	all, fits := value.([]string)
	return strings.Join(all, ", "), fits
}
