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
	apps.Statuses = &v1alpha1.Statuses{Forge: "Gitea", TokenFrom: &v1alpha1.Token{Env: "HEADGATE_FORGE_TOKEN"}, Per: v1alpha1.PerCluster, Contexts: v1alpha1.ContextsSync}
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
			"An unknown field must be an error, because users would expect it to have an effect.", head + "  drfit: Report\n",
			[]string{"line 6: spec.drfit: is not a field of a Sync; write drift"},
		},
		"KeysThatCollide": {
			"Both keys are the same in JSON, so only one of their values would be used, at random.", head + "  statuses: {1: a, \"1\": b, yes: c}\n",
			[]string{"line 6: the key 1 is not text; quote it", "line 6: the key yes is not text; quote it"},
		},
		"UnknownFieldBelow": {
			"The error contains the full path of the field.", head + "  statuses: {tokenFrom: {environment: A}}\n",
			[]string{"line 6: spec.statuses.tokenFrom.environment: is not a field of a Sync; the fields here are env, secretRef"},
		},
		"WrongCase": {
			"Names of fields are case-sensitive, as in Kubernetes.", head + "  Interval: 1m\n",
			[]string{"line 6: spec.Interval: is not a field of a Sync; write interval"},
		},
		"Twice": {
			"With two values for a field, it is unclear which one applies.", head + "  drift: Correct\n  drift: Correct\n",
			[]string{`line 7: key "drift" already set in map`},
		},
		"PackageCapability": {
			"A misspelt capability would make all definitions of the package active.",
			head + "  packages:\n  - {path: a, name: a, SafeStart: true}\n  - {path: b, name: \"b,safe-start\", safeStart: true}\n",
			[]string{"line 7: spec.packages[0].SafeStart: is not a field of a Sync; write safeStart"},
		},
		"WrongType": {
			"The error contains the path of a value of the wrong type.", head + "  maxPrunes: many\n",
			[]string{"line 6: spec.maxPrunes: must be a whole number, not text"},
		},
		"Expression": {
			"An expression that cannot be evaluated has a line, too.", head + "  healthCheckExprs:\n  - apiVersion: v1\n    kind: ConfigMap\n    current: \"[data.a] == []\"\n",
			[]string{"line 9: spec.healthCheckExprs[0].current: a list may contain only constants"},
		},
		"WrongWord": {
			"The error lists the valid values.", head + "  drift: corect\n  crdOwner: headgate\n",
			[]string{`line 6: spec.drift: must be Correct or Report, not "corect"`},
		},
		"OnlyLooks": {
			"A field that limits writes must be an error if nothing is written, because users would rely on it.",
			head + "  managementPolicy: Observable\n  adoption: Adopt\n  conflicts: Take\n  instances: Prune\n  maxPrunes: 1\n  maxActivations: 1\n  release: [ConfigMap/a/b]\n  allowedKinds: [{kind: A}]\n  activation: {}\n  references: {fromSecrets: false, namespaces: [a]}\n",
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
				"line 15: spec.references.namespaces: has no effect with managementPolicy Observable; leave it out",
			},
		},
		"Releases": {
			"An object whose identity is invalid would be pruned, not released.",
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
			"A misspelt release field has a line number and a suggestion, like any other field.", head + "  releases: [ConfigMap/team/settings]\n",
			[]string{"line 6: spec.releases: is not a field of a Sync; write release"},
		},
		"VerifyWithoutMode": {
			"Keys without a mode must be an error, because users would expect them to be checked.", strings.ReplaceAll(head, "platform.git", "platform.git, verify: {keys: [a]}"),
			[]string{"line 5: spec.source.verify.mode: is missing, so the keys have no effect; set Head, Tag or TagAndHead"},
		},
		"VerifyWithoutKeys": {
			"Without keys, no commit could be applied.", strings.ReplaceAll(head, "platform.git", "platform.git, verify: {mode: head}"),
			[]string{"line 5: spec.source.verify.keys: is missing: list public keys, one of which must have signed, or name their Secret in keysFrom"},
		},
		"VerifyTagOfBranch": {
			"A branch has no tag, so verify.mode Tag needs a tag.", strings.ReplaceAll(head, "platform.git", "platform.git, verify: {mode: Tag, keysFrom: {name: A_B}}"),
			[]string{
				"line 5: spec.source.verify.keysFrom.name: is not the name of a Secret; a secret does not belong here",
				"line 5: spec.source.ref: must name a tag if verify.mode is Tag",
			},
		},
		"Ignore": {
			"An invalid rule would match nothing, and users would expect it to work.",
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
			"A duration needs a unit.", head + "  interval: \"5\"\n  timeout: -1m\n",
			[]string{
				`line 6: spec.interval: must be a duration such as 30s, 5m or 1h, not "5"`,
				"line 7: spec.timeout: must be at least 1s, not -1m",
			},
		},
		"AllowedKinds": {
			"An entry that matches nothing, or an empty list, must not count as a limit.",
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
			"An empty list is ambiguous: it could allow every kind or none.", head + "  allowedKinds: []\n",
			[]string{"line 6: spec.allowedKinds: is empty: list what this sync may apply, or leave it out to allow every kind"},
		},
		"NoReferences": {
			"An empty list must not allow references to every namespace.", head + "  references: {namespaces: []}\n",
			[]string{"line 6: spec.references.namespaces: is empty; leave it out to allow all"},
		},
		"NoApprovers": {
			"An empty list must not allow everyone to approve.", head + "  approvals: {approvers: []}\n",
			[]string{"line 6: spec.approvals.approvers: is empty: list who may approve, or leave it out to allow everyone who may write"},
		},
		"NoValues": {
			"Kubernetes treats a field without a value as absent, so a limit with only commented entries would allow everything.",
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
			"A pattern that matches no definition allows nothing, so it must be an error.", head + "  activation:\n    allow: [\"*.S3.example.org\", a/b, \"\", \"[\"]\n",
			[]string{
				`line 7: spec.activation.allow[0]: "*.S3.example.org" matches no definition: names are lower case, such as buckets.s3.aws.m.upbound.io`,
				`line 7: spec.activation.allow[1]: "a/b" matches no definition: names are lower case, such as buckets.s3.aws.m.upbound.io`,
				"line 7: spec.activation.allow[2]: is empty",
				`line 7: spec.activation.allow[3]: "[" is no pattern: close the [, and let a character follow the \`,
			},
		},
		"Limits": {
			"0 could be read as no limit, but would select the default.", head + "  maxPrunes: 0\n",
			[]string{"line 6: spec.maxPrunes: must be at least 1, not 0; leave it out for the default"},
		},
		"Nameless": {
			"The inventory identifies a sync by its name.", strings.ReplaceAll(head, "name: prod", "namespace: A_B"),
			[]string{
				"line 3: metadata.name: is missing",
				`line 3: metadata.namespace: "A_B" is no namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character`,
			},
		},
		"StatusesWithoutCluster": {
			"Two clusters without names would overwrite each other's statuses.", head + "  statuses: {repository: platform, url: ftp://a}\n",
			[]string{
				"line 4: spec.clusterName: is missing: statuses need it to tell clusters apart that post to the same commit",
				"line 6: spec.statuses.url: must be an http(s) URL",
				`line 6: spec.statuses.repository: must be owner/name, or group/group/name, not "platform"`,
			},
		},
		"AppOfNobody": {
			"An app needs two numbers, and users may omit one.", head + "  clusterName: c\n  statuses: {app: {id: 7}}\n",
			[]string{"line 7: spec.statuses.app: needs id and installation: the numbers in the settings of the app and in the URL of its installation"},
		},
		"AppAndToken": {
			"With both an app and a token, it is unclear which one applies.", head + "  clusterName: c\n  statuses: {app: {id: 7, installation: 42}, tokenFrom: {env: A}}\n",
			[]string{"line 7: spec.statuses: has tokenFrom and app; remove one of them"},
		},
		"AppElsewhere": {
			"Only GitHub has apps.", head + "  clusterName: c\n  statuses: {forge: Gitea, app: {id: 7, installation: 42, privateKeyFrom: {env: hunter-2}}}\n",
			[]string{
				"line 7: spec.statuses.app.privateKeyFrom.env: is not the name of an environment variable; a secret does not belong here",
				"line 7: spec.statuses.app: needs forge: GitHub, not Gitea",
			},
		},
		"PreviewsWithoutStatuses": {
			"Without statuses, previews are not visible to users.", head + "  previews: true\n",
			[]string{"line 6: spec.previews: needs spec.statuses, which names the forge of the pull requests and its token"},
		},
		"NoPreviews": {
			"Settings of previews have no effect while previews are disabled.", head + "  livePreviews: true\n---\n" + strings.ReplaceAll(head, "prod", "b") + "  forkPreviews: {}\n",
			[]string{
				"line 6: spec.livePreviews: has no effect without previews: true",
				"line 13: spec.forkPreviews: has no effect without previews: true",
			},
		},
		"ForkPreviews": {
			"An invalid host would never match a registry, without any error.",
			head + "  clusterName: c\n  statuses: {}\n  previews: true\n  forkPreviews: {registries: [ghcr.io, \"*.example.org\"]}\n",
			[]string{`line 9: spec.forkPreviews.registries[1]: must be the host of a registry, such as ghcr.io or registry.example.org:5000, not "*.example.org"`},
		},
		"SecretInURL": {
			"A Sync file is widely readable, so it must not contain a secret. The error does not repeat the secret.",
			strings.ReplaceAll(head, "https://", "https://hunter2@"),
			[]string{"line 5: spec.source.repo: holds credentials; put them into the environment and name the variables in spec.source.credentialsFrom.env"},
		},
		"SecretForName": {
			"A secret is not the name of an environment variable. The error does not repeat the secret.", strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {env: {password: hunter-2}}"),
			[]string{"line 5: spec.source.credentialsFrom.env.password: is not the name of an environment variable; a secret does not belong here"},
		},
		"SecretForSecret": {
			"A secret is not the name or the key of a Secret. The error does not repeat the secret.", strings.ReplaceAll(head, "platform.git", "platform.git, webhook: {secretFrom: {env: hunter-2}}") +
				"  clusterName: c\n  statuses: {tokenFrom: {secretRef: {name: Hunter_2, key: \"hunter 2\"}}}\n",
			[]string{
				"line 5: spec.source.webhook.secretFrom.env: is not the name of an environment variable; a secret does not belong here",
				"line 7: spec.statuses.tokenFrom.secretRef.name: is not the name of a Secret; a secret does not belong here",
				"line 7: spec.statuses.tokenFrom.secretRef.key: is not the key of a Secret; a secret does not belong here",
			},
		},
		"Both": {
			"With two places for a value, it is unclear which one applies.",
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
			"A place for credentials must specify its kind.", strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {}"),
			[]string{"line 5: spec.source.credentialsFrom: is empty; specify env, secretRef or anonymous"},
		},
		"AnonymousWithCredentials": {
			"Credentials that would never be sent must be an error.", strings.ReplaceAll(head, "platform.git", "platform.git, credentialsFrom: {anonymous: true, env: {password: A}}"),
			[]string{"line 5: spec.source.credentialsFrom: has anonymous and credentials; remove one of them"},
		},
		"CAForNothing": {
			"A CA is useful only with a service.", head + "  conversion: {caFrom: {name: a}}\n",
			[]string{"line 6: spec.conversion.strategy: must be Inject if a service or a CA is given, not Safe"},
		},
		"Outside": {
			"A path outside the repository is not part of the commit.", strings.ReplaceAll(head, "platform.git", "platform.git, path: a/../../b"),
			[]string{`line 5: spec.source.path: must be a directory of the repository, relative to its root, not "a/../../b"`},
		},
		"Packages": {
			"Whether all definitions are active must be set explicitly.",
			head + "  packages:\n  - {path: ../aws, name: AWS}\n  - {path: a, name: a, safeStart: true}\n  - {path: ./a, name: a, safeStart: false}\n",
			[]string{
				`line 7: spec.packages[0].path: must be a directory of the repository, relative to its root, not "../aws"`,
				`line 7: spec.packages[0].name: "AWS" is not the name of a package: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
				"line 7: spec.packages[0].safeStart: is missing: true if the provider declares the capability safe-start, false if all its definitions are active",
				"line 9: spec.packages[2].path: repeats spec.packages[1]",
				"line 9: spec.packages[2].name: repeats spec.packages[1]",
			},
		},
		"ReadLimits": {
			"A limit that cannot be reached is not a limit.",
			head + "  limits: {fileSize: 1Ti, totalSize: much, documents: -1, depth: 100000, nodes: -1, totalNodes: -2}\n",
			[]string{
				`line 6: spec.limits.fileSize: must be a size such as 16Mi, at most 256Mi, not "1Ti"`,
				`line 6: spec.limits.totalSize: must be a size such as 16Mi, at most 64Gi, not "much"`,
				"line 6: spec.limits.documents: must be at least 1, not -1; leave it out for the default",
				"line 6: spec.limits.nodes: must be at least 1, not -1; leave it out for the default",
				"line 6: spec.limits.totalNodes: must be at least 1, not -2; leave it out for the default",
				"line 6: spec.limits.depth: must be at most 5000, not 100000; leave it out for the default",
			},
		},
		"Release": {
			"The version must include the patch release, because patch releases differ in behaviour.", head + "  crossplaneVersion: v2.0\n",
			[]string{`line 6: spec.crossplaneVersion: must be a complete version from v2.0.0 on, such as v2.3.1, not "v2.0"`},
		},
		"KubernetesRelease": {
			"A release of another program would check nothing.", head + "  kubernetesVersion: v2.0\n",
			[]string{`line 6: spec.kubernetesVersion: must be a release of Kubernetes, such as 1.34, not "v2.0"`},
		},
		"OtherKind": {
			"An object of another kind is not a Sync.", strings.ReplaceAll(head, "Sync", "Synk"),
			[]string{"line 1: it is headgate.dev/v1alpha1 Synk; a Sync is apiVersion: headgate.dev/v1alpha1, kind: Sync"},
		},
		"TwoOfOneName": {
			"Two syncs with one name would each prune the objects of the other.", head + "---\n" + head,
			[]string{"line 7: metadata.name: headgate-system/prod is the sync of line 1 already"},
		},
		"Nothing": {"A file without a Sync must be an error.", "---\n# to do\n", []string{"there is no Sync in it"}},
		"NoYAML":  {"A file that is not YAML must be an error.", "\t", []string{"line 1: found character that cannot start any token"}},
		"Half": {
			"Inject needs a service and a CA.", head + "  conversion: {strategy: Inject}\n",
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
