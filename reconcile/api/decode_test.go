package api

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

const head = `apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata: {name: prod}
spec:
  source: {repo: https://example.org/platform.git}
`

func TestDecode(t *testing.T) {
	got, err := Decode([]byte(`# two of them
---
apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata: {name: prod}
spec:
  source: {repo: https://example.org/platform.git, ref: main, path: clusters/prod}
---
apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata: {name: apps, namespace: team}
spec:
  source: {repo: ./apps, interval: 10s, credentialsFrom: {env: {password: TOKEN}}, webhook: {}}
  clusterName: prod
  statuses: {forge: Gitea}
  interval: 5m
  crdOwner: Crossplane
  maxPrunes: 4
---
`))
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.TypeMeta{APIVersion: "headgate.dev/v1alpha1", Kind: "Sync"}
	spec := v1alpha1.Spec{
		Interval: "1m0s", Timeout: "5m0s", FullCheckInterval: "1h0m0s", CRDOwner: "Auto", Catalogue: "Commit", Others: "Skip", Conversion: v1alpha1.Conversion{Strategy: "Safe"},
		ManagementPolicy: "Default", Adoption: "AdoptIfUnowned", AdoptionLeftovers: "Keep", Conflicts: "Refuse", Drift: "Correct", Instances: "Hold", Deactivation: "Never",
		Approvals: v1alpha1.Approvals{Trailers: "Never"},
	}
	verify := v1alpha1.Verify{Mode: "Never"}
	prod, apps := spec, spec
	prod.Source = v1alpha1.Source{
		Repo: "https://example.org/platform.git", Ref: "main", Path: "clusters/prod", FetchTimeout: "10m0s", Verify: verify, History: "Any", // CredentialsFrom stays nil
	}
	apps.Source = v1alpha1.Source{
		Repo: "./apps", Interval: "10s", FetchTimeout: "10m0s", CredentialsFrom: &v1alpha1.Credentials{Env: &v1alpha1.EnvCredentials{Password: "TOKEN"}},
		Webhook: &v1alpha1.Webhook{SecretFrom: &v1alpha1.Token{Env: "HEADGATE_WEBHOOK_SECRET"}}, Verify: verify, History: "Any",
	}
	apps.ClusterName, apps.Interval, apps.CRDOwner, apps.MaxPrunes = "prod", "5m", "Crossplane", new(4)
	apps.Statuses = &v1alpha1.Statuses{Forge: "Gitea", TokenFrom: &v1alpha1.Token{Env: "HEADGATE_FORGE_TOKEN"}, Per: v1alpha1.PerCluster}
	want := []v1alpha1.Sync{
		{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "headgate-system"}, Spec: prod},
		{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: "apps", Namespace: "team"}, Spec: apps},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Decode(...) (-want +got):\n%s", diff)
	}
	if got[1].Spec.Interval.Duration() != 5*time.Minute {
		t.Errorf("5m is %s", got[1].Spec.Interval.Duration())
	}
}

func TestDecodeIsStrict(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		want   []string // lines of the error
	}{
		"UnknownField": {
			"Users would expect an unknown field to work.", head + "  drfit: Report\n",
			[]string{"line 6: spec.drfit: is not a field of a Sync; write drift"},
		},
		"KeysThatCollide": {
			"As JSON both are one key, and chance would decide between their values.", head + "  statuses: {1: a, \"1\": b, yes: c}\n",
			[]string{"line 6: the key 1 is not text; quote it", "line 6: the key yes is not text; quote it"},
		},
		"UnknownFieldBelow": {
			"With its whole path.", head + "  statuses: {tokenFrom: {environment: A}}\n",
			[]string{"line 6: spec.statuses.tokenFrom.environment: is not a field of a Sync; the fields here are env, secretRef"},
		},
		"WrongCase": {
			"Kubernetes does not fold case either.", head + "  Interval: 1m\n",
			[]string{"line 6: spec.Interval: is not a field of a Sync; write interval"},
		},
		"Twice": {
			"It is not known which of two values counts.", head + "  drift: Correct\n  drift: Correct\n",
			[]string{`line 7: key "drift" already set in map`},
		},
		"PackageCapability": {
			"A misspelt capability would make every definition of the package active.",
			head + "  packages:\n  - {path: a, name: a, SafeStart: true}\n  - {path: b, name: \"b,safe-start\", safeStart: true}\n",
			[]string{"line 7: spec.packages[0].SafeStart: is not a field of a Sync; write safeStart"},
		},
		"WrongType": {
			"The path of a value of another type.", head + "  maxPrunes: many\n",
			[]string{"line 6: spec.maxPrunes: must be a whole number, not text"},
		},
		"WrongWord": {
			"The words that there are.", head + "  drift: corect\n  crdOwner: headgate\n",
			[]string{`line 6: spec.drift: must be Correct or Report, not "corect"`},
		},
		"OnlyLooks": {
			"A limit on what is never written would be relied on.",
			head + "  managementPolicy: Observable\n  adoption: Adopt\n  conflicts: Take\n  instances: Prune\n  maxPrunes: 1\n  maxActivations: 1\n  release: [ConfigMap/a/b]\n  allowedKinds: [{kind: A}]\n  activation: {}\n  references: {fromSecrets: false}\n",
			[]string{
				"line 7: spec.adoption: has no effect with managementPolicy Observable; leave it out",
				"line 8: spec.conflicts: has no effect with managementPolicy Observable; leave it out",
				"line 9: spec.instances: has no effect with managementPolicy Observable; leave it out",
				"line 10: spec.maxPrunes: has no effect with managementPolicy Observable; leave it out",
				"line 11: spec.maxActivations: has no effect with managementPolicy Observable; leave it out",
				"line 12: spec.release: has no effect with managementPolicy Observable; leave it out",
				"line 13: spec.allowedKinds: has no effect with managementPolicy Observable; leave it out",
				"line 14: spec.activation: has no effect with managementPolicy Observable; leave it out",
				"line 15: spec.references.fromSecrets: has no effect with managementPolicy Observable; leave it out",
			},
		},
		"Releases": {
			"An identity that is written wrong would not keep its object from being pruned.",
			head + "  release:\n  - ConfigMap/team/settings\n  - CustomResourceDefinition.apiextensions.k8s.io/buckets.example.org\n  - ClusterRole.rbac.authorization.k8s.io/system:team\n" +
				"  - settings\n  - ConfigMap/team/settings\n  - apps/v1/Deployment/team/web\n  - v1/ConfigMap/team/settings\n  - ''\n  - A/b/c/d\n",
			[]string{
				`line 10: spec.release[3]: "settings" is not the identity of an object; write KIND/NAMESPACE/NAME, or KIND.GROUP/NAMESPACE/NAME, as 'headgate status --full' does: ConfigMap/team/settings`,
				"line 11: spec.release[4]: repeats spec.release[0]",
				`line 12: spec.release[5]: "apps/v1/Deployment/team/web" is not the identity of an object; write Deployment.apps/team/web`,
				`line 13: spec.release[6]: "v1/ConfigMap/team/settings" is not the identity of an object; write ConfigMap/team/settings`,
				`line 14: spec.release[7]: "" is not the identity of an object; write KIND/NAMESPACE/NAME, or KIND.GROUP/NAMESPACE/NAME, as 'headgate status --full' does: ConfigMap/team/settings`,
				`line 15: spec.release[8]: "A/b/c/d" is not the identity of an object; write KIND/NAMESPACE/NAME, or KIND.GROUP/NAMESPACE/NAME, as 'headgate status --full' does: ConfigMap/team/settings`,
			},
		},
		"ReleaseMisspelt": {
			"The field has a line and a suggestion, as any other.", head + "  releases: [ConfigMap/team/settings]\n",
			[]string{"line 6: spec.releases: is not a field of a Sync; write release"},
		},
		"VerifyWithoutMode": {
			"Someone who lists keys believes that they count.", strings.ReplaceAll(head, "platform.git", "platform.git, verify: {keys: [a]}"),
			[]string{"line 5: spec.source.verify.mode: is missing, so the keys have no effect; set Head, Tag or TagAndHead"},
		},
		"VerifyWithoutKeys": {
			"Without a key, no commit would be applied.", strings.ReplaceAll(head, "platform.git", "platform.git, verify: {mode: head}"),
			[]string{"line 5: spec.source.verify.keys: is missing: list public keys, one of which must have signed, or name their Secret in keysFrom"},
		},
		"VerifyTagOfBranch": {
			"A branch has no signed tag.", strings.ReplaceAll(head, "platform.git", "platform.git, verify: {mode: Tag, keysFrom: {name: A_B}}"),
			[]string{
				"line 5: spec.source.verify.keysFrom.name: is not the name of a Secret; a secret does not belong here",
				"line 5: spec.source.ref: must name a tag if verify.mode is Tag",
			},
		},
		"Ignore": {
			"A rule that matches nothing, because it is written wrong, would be believed to work.",
			head + "  ignore:\n  - {target: {kind: '('}, paths: [spec.replicas, /a~b, /a//b, /, /metadata/name]}\n  - target: {name: a}\n",
			[]string{
				"line 7: spec.ignore[0].target.kind: is not a regular expression: error parsing regexp: missing closing ): `(`",
				`line 7: spec.ignore[0].paths[0]: must be a JSON pointer such as /spec/replicas, in which ~0 is ~ and ~1 is /, not "spec.replicas"`,
				`line 7: spec.ignore[0].paths[1]: must be a JSON pointer such as /spec/replicas, in which ~0 is ~ and ~1 is /, not "/a~b"`,
				`line 7: spec.ignore[0].paths[2]: must be a JSON pointer such as /spec/replicas, in which ~0 is ~ and ~1 is /, not "/a//b"`,
				`line 7: spec.ignore[0].paths[3]: must be a JSON pointer such as /spec/replicas, in which ~0 is ~ and ~1 is /, not "/"`,
				"line 7: spec.ignore[0].paths[4]: /metadata/name identifies the object; remove this path",
				"line 8: spec.ignore[1].paths: is missing: list the fields to ignore, such as /spec/replicas",
			},
		},
		"Durations": {
			"A duration without a unit is a mistake.", head + "  interval: \"5\"\n  timeout: -1m\n",
			[]string{
				`line 6: spec.interval: must be a duration such as 30s, 5m or 1h, not "5"`,
				"line 7: spec.timeout: must be at least 1s, not -1m",
			},
		},
		"AllowedKinds": {
			"An entry that matches nothing, or a list that a template left empty, must not pass for a limit.",
			head + "  allowedKinds:\n  - {kind: \"\"}\n  - {group: apps/v1, kind: Deployment}\n  - {kind: \"[\"}\n  - {kind: A, scope: Cluster, namespaces: [a]}\n  - {kind: A, scope: cluster}\n  - {kind: ConfigMap.v1}\n  - {kind: A, namespaces: []}\n  - {kind: A, names: [\"\"]}\n",
			[]string{
				"line 7: spec.allowedKinds[0].kind: is missing; write * for every kind of the group",
				`line 8: spec.allowedKinds[1].group: must be a group without the version v1; write "apps"`,
				`line 9: spec.allowedKinds[2].kind: "[" is no pattern: close the [, and let a character follow the \`,
				"line 10: spec.allowedKinds[3].namespaces: has no effect with scope: Cluster; leave one of them out",
				`line 11: spec.allowedKinds[4].scope: must be Namespaced or Cluster, not "cluster"`,
				`line 12: spec.allowedKinds[5].kind: must be a kind without its group, not "ConfigMap.v1"`,
				"line 13: spec.allowedKinds[6].namespaces: is empty; leave it out to allow all",
				"line 14: spec.allowedKinds[7].names[0]: is empty",
			},
		},
		"NoAllowedKinds": {
			"An empty list reads like no limit to one person and like a full stop to another.", head + "  allowedKinds: []\n",
			[]string{"line 6: spec.allowedKinds: is empty: list what this sync may apply, or leave it out to allow every kind"},
		},
		"NoApprovers": {
			"A list that a template left empty must not let everyone approve.", head + "  approvals: {approvers: []}\n",
			[]string{"line 6: spec.approvals.approvers: is empty: list who may approve, or leave it out to allow everyone who may write"},
		},
		"NoValues": {
			"Kubernetes takes a field without a value for absent. A limit all of whose entries are comments would allow everything.",
			head + "  allowedKinds:\n  # - {kind: ConfigMap}\n  approvals:\n    approvers:\n    # - alice\n  activation:\n  ignore: [{target: {kind: ~}, paths: [~]}]\n",
			[]string{
				"line 11: spec.activation: has no value; give it one, or remove the field",
				"line 6: spec.allowedKinds: has no value; give it one, or remove the field",
				"line 9: spec.approvals.approvers: has no value; give it one, or remove the field",
				"line 12: spec.ignore[0].paths[0]: has no value; give it one, or remove the field",
				"line 12: spec.ignore[0].target.kind: has no value; give it one, or remove the field",
			},
		},
		"Activation": {
			"A pattern that matches no definition allows nothing, and its author should know.", head + "  activation:\n    allow: [\"*.S3.example.org\", a/b, \"\", \"[\"]\n",
			[]string{
				`line 7: spec.activation.allow[0]: "*.S3.example.org" matches no definition: names are lower case, such as buckets.s3.aws.m.upbound.io`,
				`line 7: spec.activation.allow[1]: "a/b" matches no definition: names are lower case, such as buckets.s3.aws.m.upbound.io`,
				"line 7: spec.activation.allow[2]: is empty",
				`line 7: spec.activation.allow[3]: "[" is no pattern: close the [, and let a character follow the \`,
			},
		},
		"Limits": {
			"0 reads like none, and would be the default.", head + "  maxPrunes: 0\n",
			[]string{"line 6: spec.maxPrunes: must be at least 1, not 0; leave it out for the default"},
		},
		"Nameless": {
			"The name is by which what was applied is known.", strings.ReplaceAll(head, "name: prod", "namespace: A_B"),
			[]string{
				"line 3: metadata.name: is missing",
				`line 3: metadata.namespace: "A_B" is no namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character`,
			},
		},
		"StatusesWithoutCluster": {
			"Two clusters would overwrite each other's statuses.", head + "  statuses: {repository: platform, url: ftp://a}\n",
			[]string{
				"line 4: spec.clusterName: is missing: statuses need it to tell clusters apart that post to the same commit",
				"line 6: spec.statuses.url: must be an http(s) URL",
				`line 6: spec.statuses.repository: must be owner/name, or group/group/name, not "platform"`,
			},
		},
		"AppOfNobody": {
			"Both numbers are easy to mix up, and to forget.", head + "  clusterName: c\n  statuses: {app: {id: 7}}\n",
			[]string{"line 7: spec.statuses.app: needs id and installation: the numbers in the settings of the app and in the URL of its installation"},
		},
		"AppAndToken": {
			"It is not known which of two counts.", head + "  clusterName: c\n  statuses: {app: {id: 7, installation: 42}, tokenFrom: {env: A}}\n",
			[]string{"line 7: spec.statuses: has tokenFrom and app; remove one of them"},
		},
		"AppElsewhere": {
			"Only GitHub has them.", head + "  clusterName: c\n  statuses: {forge: Gitea, app: {id: 7, installation: 42, privateKeyFrom: {env: hunter-2}}}\n",
			[]string{
				"line 7: spec.statuses.app.privateKeyFrom.env: is not the name of an environment variable; a secret does not belong here",
				"line 7: spec.statuses.app: needs forge: GitHub, not Gitea",
			},
		},
		"PreviewsWithoutStatuses": {
			"Users would not see them.", head + "  previews: true\n",
			[]string{"line 6: spec.previews: needs spec.statuses, which names the forge of the pull requests and its token"},
		},
		"NoPreviews": {
			"Users may think that there are.", head + "  livePreviews: true\n---\n" + strings.ReplaceAll(head, "prod", "b") + "  forkPreviews: {}\n",
			[]string{
				"line 6: spec.livePreviews: has no effect without previews: true",
				"line 13: spec.forkPreviews: has no effect without previews: true",
			},
		},
		"ForkPreviews": {
			"An invalid host would never be asked, and the user would not learn why.",
			head + "  clusterName: c\n  statuses: {}\n  previews: true\n  forkPreviews: {registries: [ghcr.io, \"*.example.org\"]}\n",
			[]string{`line 9: spec.forkPreviews.registries[1]: must be the host of a registry, such as ghcr.io or registry.example.org:5000, not "*.example.org"`},
		},
		"SecretInURL": {
			"A file is read by many, and is not to hold a secret; the error does not repeat it.",
			strings.ReplaceAll(head, "https://", "https://hunter2@"),
			[]string{"line 5: spec.source.repo: holds credentials; put them into the environment and name the variables in spec.source.credentialsFrom.env"},
		},
		"TakesOverAnything": {
			"Two Syncs with it would take one inventory from each other for ever.",
			strings.ReplaceAll(head, "platform.git", "platform.git, takeOver: '*'"),
			[]string{"line 5: spec.source.takeOver: must name the source that this sync takes over from, as the message of the refusal does"},
		},
		"SecretForName": {
			"Nor does this one.", strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {env: {password: hunter-2}}"),
			[]string{"line 5: spec.source.credentialsFrom.env.password: is not the name of an environment variable; a secret does not belong here"},
		},
		"SecretForSecret": {
			"Nor a Secret's.", strings.ReplaceAll(head, "platform.git", "platform.git, webhook: {secretFrom: {env: hunter-2}}") +
				"  clusterName: c\n  statuses: {tokenFrom: {secretRef: {name: Hunter_2, key: \"hunter 2\"}}}\n",
			[]string{
				"line 5: spec.source.webhook.secretFrom.env: is not the name of an environment variable; a secret does not belong here",
				"line 7: spec.statuses.tokenFrom.secretRef.name: is not the name of a Secret; a secret does not belong here",
				"line 7: spec.statuses.tokenFrom.secretRef.key: is not the key of a Secret; a secret does not belong here",
			},
		},
		"Both": {
			"It is not known which of two places counts.",
			strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {env: {password: A}, secretRef: {name: a}}") +
				"  clusterName: c\n  statuses: {tokenFrom: {env: A, secretRef: {name: a}}}\n  conversion: {strategy: Inject, service: {namespace: a}, caBundle: b, caFrom: {}}\n",
			[]string{
				"line 5: spec.source.credentialsFrom: has env and secretRef; remove one of them",
				"line 7: spec.statuses.tokenFrom: has env and secretRef; remove one of them",
				"line 8: spec.conversion.caFrom.name: is missing: the name of a Secret in the namespace of the Sync",
				"line 8: spec.conversion.caFrom: differs from caBundle; remove one of them",
			},
		},
		"NeitherPlace": {
			"A place needs its kind.", strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {}"),
			[]string{"line 5: spec.source.credentialsFrom: is empty; specify env, secretRef or anonymous"},
		},
		"AnonymousWithCredentials": {
			"Credentials that are never sent are a mistake.", strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {anonymous: true, env: {password: A}}"),
			[]string{"line 5: spec.source.credentialsFrom: has anonymous and credentials; remove one of them"},
		},
		"CAForNothing": {
			"A CA goes with a service.", head + "  conversion: {caFrom: {name: a}}\n",
			[]string{"line 6: spec.conversion.strategy: must be Inject if a service or a CA is given, not Safe"},
		},
		"Outside": {
			"A path outside of the repository does not belong to the commit.", strings.ReplaceAll(head, "platform.git", "platform.git, path: a/../../b"),
			[]string{`line 5: spec.source.path: must be a directory of the repository, relative to its root, not "a/../../b"`},
		},
		"Packages": {
			"Activating everything must be a decision, not a default.",
			head + "  packages:\n  - {path: ../aws, name: AWS}\n  - {path: a, name: a, safeStart: true}\n  - {path: ./a, name: a, safeStart: false}\n",
			[]string{
				`line 7: spec.packages[0].path: must be a directory of the repository, relative to its root, not "../aws"`,
				`line 7: spec.packages[0].name: "AWS" is no name of a package: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
				"line 7: spec.packages[0].safeStart: is missing: true if the provider declares the capability safe-start, false if all its definitions are active",
				"line 9: spec.packages[2].path: repeats spec.packages[1]",
				"line 9: spec.packages[2].name: repeats spec.packages[1]",
			},
		},
		"ReadLimits": {
			"An unreachable limit is none.",
			head + "  limits: {fileSize: 1Ti, totalSize: much, documents: -1, depth: 100000, nodes: -1, totalNodes: -2}\n",
			[]string{
				`line 6: spec.limits.fileSize: must be a size such as 16Mi, at most 256Mi, not "1Ti"`,
				`line 6: spec.limits.totalSize: must be a size such as 16Mi, at most 64Gi, not "much"`,
				"line 6: spec.limits.documents: must be at least 1, not -1; leave it out for the default",
				"line 6: spec.limits.nodes: must be at least 1, not -1; leave it out for the default",
				"line 6: spec.limits.totalNodes: must be at least 1, not -2; leave it out for the default",
				"line 6: spec.limits.depth: must be at least 1 and at most 5000, not 100000; leave it out for the default",
			},
		},
		"Release": {
			"Patch releases differ, too.", head + "  crossplaneVersion: v2.0\n",
			[]string{`line 6: spec.crossplaneVersion: must be a complete version from v2.0.0 on, such as v2.3.1, not "v2.0"`},
		},
		"OtherKind": {
			"Not everything with a spec is a Sync.", strings.ReplaceAll(head, "Sync", "Synk"),
			[]string{"line 1: it is headgate.dev/v1alpha1 Synk; a Sync is apiVersion: headgate.dev/v1alpha1, kind: Sync"},
		},
		"TwoOfOneName": {
			"Both would take what the other applied for their own.", head + "---\n" + head,
			[]string{"line 7: metadata.name: headgate-system/prod is the sync of line 1 already"},
		},
		"Nothing": {"An empty file is a mistake.", "---\n# to do\n", []string{"there is no Sync in it"}},
		"NoYAML":  {"And so is this.", "\t", []string{"line 1: found character that cannot start any token"}},
		"Half": {
			"Inject without a service leads nowhere.", head + "  conversion: {strategy: Inject}\n",
			[]string{
				"line 6: spec.conversion.service.namespace: is missing",
				"line 6: spec.conversion.caBundle: is missing; specify caBundle or caFrom",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode([]byte(tc.file))
			if err == nil {
				t.Fatalf("%s\nDecode(...): no error, but %v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("%s\nDecode(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A decoded file keeps its meaning when it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "  clusterName: a\n  statuses: {forge: GitHub, tokenFrom: {env: A}}\n---\n" + strings.ReplaceAll(head, "prod", "b")))
	f.Add([]byte(head + "  conversion: {strategy: Inject, service: {namespace: a, port: 1}, caBundle: x}\n  maxPrunes: 1\n  suspend: true\n"))
	f.Add([]byte(`{"apiVersion":"headgate.dev/v1alpha1","kind":"Sync","metadata":{"name":"a","creationTimestamp":null},"spec":{"source":{"repo":"a"}}}`))
	f.Add([]byte(head + "  crossplaneVersion: 2.1.0\n  packages: [{path: ., name: a, safeStart: false}]\n"))
	f.Add([]byte(head + "  ignore: [{target: {kind: Deployment, name: a.*}, paths: [/spec/replicas, /metadata/labels/a~1b]}]\n"))
	f.Add([]byte(head + "  packages: []\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		syncs, err := Decode(file)
		if err != nil {
			return
		}
		for _, s := range syncs {
			again, err := yaml.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(again)
			if err != nil {
				t.Fatalf("%v\n%s", err, again)
			}
			if diff := cmp.Diff([]v1alpha1.Sync{s}, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read again (-want +got):\n%s\n%s", diff, again)
			}
		}
	})
}
