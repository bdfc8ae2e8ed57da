package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const crdFile = "../../../examples/controller/crds/headgate.dev_syncs.yaml"

// A spec is a row of the table that both Validate and the API server judge.
type spec struct {
	text string // of the spec, below source.repo
	bad  string // a field that is refused; "" if the Sync is good
	only string // why only Validate refuses it
}

// minimal is the source of a row that has none.
const minimal = "source: {repo: https://git.example.org/a/b}\n"

var specs = map[string]spec{
	"Minimal":      {text: minimal},
	"NoSource":     {text: "suspend: true", bad: "spec.source"},
	"NoRepo":       {text: "source: {ref: main}", bad: "spec.source.repo"},
	"EmptyRepo":    {text: "source: {repo: ''}", bad: "spec.source.repo"},
	"Port":         {text: "source: {repo: 'https://git.example.org:8443/a/b.git', ref: refs/heads/main, path: clusters/prod}"},
	"Flux":         {text: "source: {sourceRef: {kind: GitRepository, name: platform, namespace: flux-system}, path: a}\nclusterName: c\nstatuses: {tokenFrom: {secretRef: {name: token}}, url: https://git.example.org, repository: a/b}"},
	"FluxKind":     {text: "source: {sourceRef: {kind: Bucket, name: platform}}", bad: "spec.source.sourceRef.kind"},
	"FluxName":     {text: "source: {sourceRef: {kind: OCIRepository, name: a/b}}", bad: "spec.source.sourceRef.name"},
	"FluxSpace":    {text: "source: {sourceRef: {kind: OCIRepository, name: b, namespace: a/b}}", bad: "spec.source.sourceRef.namespace"},
	"FluxAndRepo":  {text: "source: {repo: https://git.example.org/a/b, sourceRef: {kind: GitRepository, name: platform}}", bad: "spec.source.sourceRef"},
	"FluxRef":      {text: "source: {ref: main, sourceRef: {kind: GitRepository, name: platform}}", bad: "spec.source.sourceRef"},
	"FluxVerify":   {text: "source: {verify: {mode: Head, keys: [k]}, sourceRef: {kind: GitRepository, name: platform}}", bad: "spec.source.sourceRef"},
	"FluxHistory":  {text: "source: {history: FastForward, sourceRef: {kind: GitRepository, name: platform}}", bad: "spec.source.sourceRef"},
	"FluxPreviews": {text: "source: {sourceRef: {kind: GitRepository, name: p}}\npreviews: true\nclusterName: c\nstatuses: {tokenFrom: {secretRef: {name: token}}, url: https://git.example.org, repository: a/b}", bad: "spec.previews"},
	"FluxStatuses": {text: "source: {sourceRef: {kind: GitRepository, name: p}}\nclusterName: c\nstatuses: {tokenFrom: {secretRef: {name: token}}}", bad: "spec.statuses"},
	"Directory":    {text: "source: {repo: /var/run/secrets}", bad: "spec.source.repo"},
	"FileURL":      {text: "source: {repo: file:///var/run}", bad: "spec.source.repo"},
	"SSH":          {text: "source: {repo: 'git@git.example.org:a/b.git'}", bad: "spec.source.repo"},
	"SSHURL":       {text: "source: {repo: 'ssh://git@git.example.org:2222/a/b.git', credentialsFrom: {secretRef: {name: key}}}"},
	"SSHHome":      {text: "source: {repo: 'ssh://[::1]/~me/b.git', credentialsFrom: {secretRef: {name: key, key: ssh-privatekey}}}"},
	"SSHNoKey":     {text: "source: {repo: 'ssh://git@git.example.org/a/b.git'}", bad: "spec.source.credentialsFrom"},
	"SSHAnonymous": {text: "source: {repo: 'ssh://git@git.example.org/a/b.git', credentialsFrom: {anonymous: true}}", bad: "spec.source.credentialsFrom"},
	"SSHPassword":  {text: "source: {repo: 'ssh://git:x@git.example.org/a/b.git', credentialsFrom: {secretRef: {name: key}}}", bad: "spec.source.repo"},
	"SSHOption":    {text: "source: {repo: 'ssh://-oProxyCommand=x/a', credentialsFrom: {secretRef: {name: key}}}", bad: "spec.source.repo"},
	"SSHUser":      {text: "source: {repo: 'ssh://-oProxyCommand=x@h/a', credentialsFrom: {secretRef: {name: key}}}", bad: "spec.source.repo"},
	"SSHNoPath":    {text: "source: {repo: 'ssh://git@git.example.org', credentialsFrom: {secretRef: {name: key}}}", bad: "spec.source.repo"},
	"SSHQuery":     {text: "source: {repo: 'ssh://git@git.example.org/a?b', credentialsFrom: {secretRef: {name: key}}}", bad: "spec.source.repo"},
	"Userinfo":     {text: "source: {repo: 'https://user:secret@git.example.org/a/b'}", bad: "spec.source.repo"},
	"NoURL":        {text: "source: {repo: 'https://git.example.org/%zz'}", bad: "spec.source.repo"},
	"DotPath":      {text: "source: {repo: https://git.example.org/a/b, path: ./a/.b/..c/}"},
	"Proxy":        {text: "source: {repo: https://git.example.org/a/b, proxySecretRef: {name: proxy}}"},
	"ProxySSH":     {text: "source: {repo: ssh://git.example.org/a/b, credentialsFrom: {secretRef: {name: a}}, proxySecretRef: {name: proxy}}", bad: "spec.source.proxySecretRef"},
	"ProxyKey":     {text: "source: {repo: https://git.example.org/a/b, proxySecretRef: {name: proxy, key: a}}", bad: "spec.source.proxySecretRef"},
	"ProxyFlux":    {text: "source: {sourceRef: {kind: GitRepository, name: a}, proxySecretRef: {name: proxy}}", bad: "spec.source.proxySecretRef"},
	"ProxyName":    {text: "source: {repo: https://git.example.org/a/b, proxySecretRef: {name: Proxy_}}", bad: "spec.source.proxySecretRef.name"},
	"Range":        {text: "source: {repo: https://git.example.org/a/b, ref: 'semver:>=1.2.0-0 <2 || ~3.1'}"},
	"RangeTag":     {text: "source: {repo: https://git.example.org/a/b, ref: 'semver:1.x', verify: {mode: Tag, keys: [k]}}"},
	"NoRange":      {text: "source: {repo: https://git.example.org/a/b, ref: 'semver:'}", bad: "spec.source.ref"},
	"RangeText":    {text: "source: {repo: https://git.example.org/a/b, ref: 'semver:$(x)'}", bad: "spec.source.ref"},
	"UpPath":       {text: "source: {repo: https://git.example.org/a/b, path: ../a}", bad: "spec.source.path"},
	"UpInPath":     {text: "source: {repo: https://git.example.org/a/b, path: a/../../b}", bad: "spec.source.path"},
	"UpAtEnd":      {text: "source: {repo: https://git.example.org/a/b, path: a/..}", bad: "spec.source.path"},
	"RootPath":     {text: "source: {repo: https://git.example.org/a/b, path: /a}", bad: "spec.source.path"},
	"Durations":    {text: minimal + "interval: 90s\ntimeout: 1h30m\nfullCheckInterval: 8760h"},
	"NoDuration":   {text: minimal + "interval: soon", bad: "spec.interval"},
	"Short":        {text: minimal + "interval: 999ms", bad: "spec.interval"},
	"Long":         {text: minimal + "timeout: 8761h", bad: "spec.timeout"},
	"ShortCheck":   {text: minimal + "fullCheckInterval: 59s", bad: "spec.fullCheckInterval"},
	"ShortPoll":    {text: "source: {repo: https://git.example.org/a/b, interval: 0s}", bad: "spec.source.interval"},
	"LongFetch":    {text: "source: {repo: https://git.example.org/a/b, fetchTimeout: 9000h}", bad: "spec.source.fetchTimeout"},

	"Anonymous":      {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {anonymous: true}}"},
	"Secret":         {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {secretRef: {name: git, key: .token}}}"},
	"NoCredentials":  {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {}}", bad: "spec.source.credentialsFrom"},
	"NotAnonymous":   {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {anonymous: true, secretRef: {name: git}}}", bad: "spec.source.credentialsFrom"},
	"Env":            {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {env: {password: HEADGATE_GIT_PASSWORD}}}", bad: "spec.source.credentialsFrom.env"},
	"SecretName":     {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {secretRef: {name: Git_}}}", bad: "spec.source.credentialsFrom.secretRef.name"},
	"SecretKey":      {text: "source: {repo: https://git.example.org/a/b, credentialsFrom: {secretRef: {name: git, key: ..key}}}", bad: "spec.source.credentialsFrom.secretRef.key"},
	"Webhook":        {text: "source: {repo: https://git.example.org/a/b, webhook: {secretFrom: {secretRef: {name: hook}}}}"},
	"WebhookDefault": {text: "source: {repo: https://git.example.org/a/b, webhook: {}}", bad: "spec.source.webhook.secretFrom"},
	"WebhookEnv":     {text: "source: {repo: https://git.example.org/a/b, webhook: {secretFrom: {env: AWS_SECRET_ACCESS_KEY}}}", bad: "spec.source.webhook.secretFrom"},

	"Verify":        {text: "source: {repo: https://git.example.org/a/b, verify: {mode: Head, keysFrom: {name: keys}}}"},
	"VerifyTag":     {text: "source: {repo: https://git.example.org/a/b, ref: v1.2.3, verify: {mode: Tag, keys: [k]}}"},
	"VerifyNothing": {text: "source: {repo: https://git.example.org/a/b, verify: {mode: Head}}", bad: "spec.source.verify.keys"},
	"VerifyNever":   {text: "source: {repo: https://git.example.org/a/b, verify: {keys: [k]}}", bad: "spec.source.verify.mode"},
	"VerifyBranch":  {text: "source: {repo: https://git.example.org/a/b, ref: refs/heads/main, verify: {mode: Tag, keys: [k]}}", bad: "spec.source.ref"},
	"VerifyNoTag":   {text: "source: {repo: https://git.example.org/a/b, verify: {mode: TagAndHead, keys: [k]}}", bad: "spec.source.ref"},
	"VerifyCommit":  {text: "source: {repo: https://git.example.org/a/b, ref: 0123456789abcdef0123456789abcdef01234567, verify: {mode: Tag, keys: [k]}}", bad: "spec.source.ref"},
	"VerifyMode":    {text: "source: {repo: https://git.example.org/a/b, verify: {mode: Maybe, keys: [k]}}", bad: "spec.source.verify.mode"},
	"History":       {text: "source: {repo: https://git.example.org/a/b, history: Forward}", bad: "spec.source.history"},

	"Statuses":         {text: minimal + "clusterName: prod\npageURL: https://example.org/x?y\nstatuses: {tokenFrom: {secretRef: {name: token}}, forge: Gitea, url: 'https://git.example.org', repository: a/b/c}"},
	"StatusesApp":      {text: minimal + "clusterName: prod\nstatuses: {app: {id: 1, installation: 2, privateKeyFrom: {secretRef: {name: key}}}}"},
	"StatusesDefault":  {text: minimal + "clusterName: prod\nstatuses: {}", bad: "spec.statuses"},
	"StatusesEnv":      {text: minimal + "clusterName: prod\nstatuses: {tokenFrom: {env: HEADGATE_FORGE_TOKEN}}", bad: "spec.statuses.tokenFrom"},
	"NoClusterName":    {text: minimal + "statuses: {tokenFrom: {secretRef: {name: token}}}", bad: "spec.clusterName"},
	"ClusterName":      {text: minimal + "clusterName: a b", bad: "spec.clusterName"},
	"PageURL":          {text: minimal + "pageURL: https://example.org", bad: "spec.pageURL"},
	"PageFTP":          {text: minimal + "clusterName: prod\npageURL: ftp://example.org\nstatuses: {tokenFrom: {secretRef: {name: token}}}", bad: "spec.pageURL"},
	"StatusesURL":      {text: minimal + "clusterName: prod\nstatuses: {url: 'https://me@example.org', tokenFrom: {secretRef: {name: token}}}", bad: "spec.statuses.url"},
	"StatusesForge":    {text: minimal + "clusterName: prod\nstatuses: {forge: SourceHut, tokenFrom: {secretRef: {name: token}}}", bad: "spec.statuses.forge"},
	"StatusesPer":      {text: minimal + "clusterName: prod\nstatuses: {per: Pull, tokenFrom: {secretRef: {name: token}}}", bad: "spec.statuses.per"},
	"StatusesRepo":     {text: minimal + "clusterName: prod\nstatuses: {repository: a, tokenFrom: {secretRef: {name: token}}}", bad: "spec.statuses.repository"},
	"StatusesRepoPart": {text: minimal + "clusterName: prod\nstatuses: {repository: a//b, tokenFrom: {secretRef: {name: token}}}", bad: "spec.statuses.repository"},
	"StatusesBoth":     {text: minimal + "clusterName: prod\nstatuses: {tokenFrom: {secretRef: {name: token}}, app: {id: 1, installation: 2, privateKeyFrom: {secretRef: {name: key}}}}", bad: "spec.statuses"},
	"AppForge":         {text: minimal + "clusterName: prod\nstatuses: {forge: GitLab, app: {id: 1, installation: 2, privateKeyFrom: {secretRef: {name: key}}}}", bad: "spec.statuses.app"},
	"AppID":            {text: minimal + "clusterName: prod\nstatuses: {app: {id: 0, installation: 2, privateKeyFrom: {secretRef: {name: key}}}}", bad: "spec.statuses.app"},
	"AppKey":           {text: minimal + "clusterName: prod\nstatuses: {app: {id: 1, installation: 2}}", bad: "spec.statuses.app.privateKeyFrom"},

	"Previews":        {text: minimal + "clusterName: prod\npreviews: true\nlivePreviews: true\nforkPreviews: {registries: [ghcr.io]}\npreviewRegistries: ['localhost:5000', '[::1]:5000', a.b]\nstatuses: {tokenFrom: {secretRef: {name: token}}}"},
	"PreviewsWhere":   {text: minimal + "previews: true", bad: "spec.previews"},
	"LivePreviews":    {text: minimal + "livePreviews: true", bad: "spec.livePreviews"},
	"ForkPreviews":    {text: minimal + "forkPreviews: {}", bad: "spec.forkPreviews"},
	"Registry":        {text: minimal + "previewRegistries: [ghcr]", bad: "spec.previewRegistries"},
	"RegistryPath":    {text: minimal + "previewRegistries: [ghcr.io/a]", bad: "spec.previewRegistries"},
	"Trust":           {text: minimal + "previewTrust: [{kind: Provider, bump: major}, {kind: Function, bump: minor}, {kind: Configuration, bump: patch}]"},
	"TrustNothing":    {text: minimal + "previewTrust: []"},
	"TrustTwice":      {text: minimal + "previewTrust: [{kind: Provider, bump: patch}, {kind: Provider, bump: major}]", bad: "spec.previewTrust"},
	"TrustKind":       {text: minimal + "previewTrust: [{kind: Composition, bump: patch}]", bad: "spec.previewTrust[0].kind"},
	"TrustNoBump":     {text: minimal + "previewTrust: [{kind: Provider}]", bad: "spec.previewTrust[0].bump"},
	"TrustBump":       {text: minimal + "previewTrust: [{kind: Provider, bump: older}]", bad: "spec.previewTrust[0].bump"},
	"Crossplane":      {text: minimal + "crossplaneVersion: v2.3.1-rc.1\nkubernetesVersion: '1.34'"},
	"Crossplane1":     {text: minimal + "crossplaneVersion: v1.20.0", bad: "spec.crossplaneVersion"},
	"CrossplanePart":  {text: minimal + "crossplaneVersion: v2.3", bad: "spec.crossplaneVersion"},
	"Kubernetes":      {text: minimal + "kubernetesVersion: '2.0'", bad: "spec.kubernetesVersion"},
	"Schemas":         {text: minimal + "schemas: [../crds]", bad: "spec.schemas"},
	"Packages":        {text: minimal + "packages: [{name: provider-a, path: a, safeStart: true}, {name: provider-b, path: b, safeStart: false}]"},
	"PackagePath":     {text: minimal + "packages: [{name: provider-a, path: /a, safeStart: true}]", bad: "spec.packages"},
	"PackageName":     {text: minimal + "packages: [{name: Provider, path: a, safeStart: true}]", bad: "spec.packages"},
	"PackageUnknown":  {text: minimal + "packages: [{name: provider-a, path: a}]", bad: "spec.packages"},
	"PackageTwice":    {text: minimal + "packages: [{name: p, path: a, safeStart: true}, {name: p, path: b, safeStart: true}]", bad: "spec.packages"},
	"PackagesAtOne":   {text: minimal + "packages: [{name: p, path: a, safeStart: true}, {name: q, path: a, safeStart: true}]", bad: "spec.packages"},
	"PackagesAtSlash": {text: minimal + "packages: [{name: p, path: a, safeStart: true}, {name: q, path: a/, safeStart: true}]", bad: "spec.packages", only: "CEL cannot clean a path"},

	"Limits":       {text: minimal + "limits: {fileSize: 256Mi, totalSize: 64Gi, documents: 1, nodes: 1000000000, totalNodes: 5, depth: 5000}"},
	"FileSize":     {text: minimal + "limits: {fileSize: 257Mi}", bad: "spec.limits.fileSize"},
	"NoSize":       {text: minimal + "limits: {fileSize: big}", bad: "spec.limits.fileSize"},
	"TotalSize":    {text: minimal + "limits: {totalSize: '0'}", bad: "spec.limits.totalSize"},
	"Documents":    {text: minimal + "limits: {documents: -1}", bad: "spec.limits.documents"},
	"Depth":        {text: minimal + "limits: {depth: 5001}", bad: "spec.limits.depth"},
	"MaxPrunes":    {text: minimal + "maxPrunes: 0", bad: "spec.maxPrunes"},
	"Life":         {text: minimal + "serviceAccountName: team-a.deployer\ndeletionPolicy: Delete\ndependsOn: [{name: platform}, {name: base.one, until: Ready}]"},
	"Account":      {text: minimal + "serviceAccountName: kube-system/admin", bad: "spec.serviceAccountName"},
	"Remote":       {text: minimal + "kubeConfig: {secretRef: {name: prod-eu, key: config}}"},
	"RemoteNoRef":  {text: minimal + "kubeConfig: {}", bad: "spec.kubeConfig.secretRef"},
	"RemoteName":   {text: minimal + "kubeConfig: {secretRef: {name: other/prod}}", bad: "spec.kubeConfig.secretRef.name"},
	"RemoteKey":    {text: minimal + "kubeConfig: {secretRef: {name: prod, key: ../config}}", bad: "spec.kubeConfig.secretRef.key"},
	"Suspension":   {text: minimal + "suspend: true\nsuspension: {until: '2026-01-31T12:00:00Z', why: migration, by: alice}"},
	"SuspendNot":   {text: minimal + "suspension: {why: migration}", bad: "spec.suspension"},
	"SuspendLong":  {text: minimal + "suspend: true\nsuspension: {why: " + strings.Repeat("a", 257) + "}", bad: "spec.suspension.why"},
	"Deletion":     {text: minimal + "deletionPolicy: Keep", bad: "spec.deletionPolicy"},
	"DependsTwice": {text: minimal + "dependsOn: [{name: a}, {name: a}]", bad: "spec.dependsOn"},
	"DependsPath":  {text: minimal + "dependsOn: [{name: other/a}]", bad: "spec.dependsOn[0].name"},
	"Until":        {text: minimal + "dependsOn: [{name: a, until: Later}]", bad: "spec.dependsOn[0].until"},

	"Health":         {text: minimal + "healthCheckExprs: [{apiVersion: v1, kind: ConfigMap, current: 'true'}, {apiVersion: a-b.example.org/v1beta1, current: a, failed: b, inProgress: c}, {apiVersion: a-b.example.org/v1, kind: Thing, current: a}]"},
	"HealthTwice":    {text: minimal + "healthCheckExprs: [{apiVersion: a.org/v1, kind: Thing, current: a}, {apiVersion: a.org/v2, kind: Thing, current: a}]", bad: "spec.healthCheckExprs"},
	"HealthGroup":    {text: minimal + "healthCheckExprs: [{apiVersion: a.org/v1, current: a}, {apiVersion: a.org/v2, current: a}]", bad: "spec.healthCheckExprs"},
	"HealthVersion":  {text: minimal + "healthCheckExprs: [{apiVersion: a.org, kind: Thing, current: a}]", bad: "spec.healthCheckExprs[0].apiVersion"},
	"HealthKind":     {text: minimal + "healthCheckExprs: [{apiVersion: a.org/v1, kind: thing, current: a}]", bad: "spec.healthCheckExprs[0].kind"},
	"HealthNothing":  {text: minimal + "healthCheckExprs: [{apiVersion: a.org/v1, kind: Thing, failed: a}]", bad: "spec.healthCheckExprs[0].current"},
	"HealthLong":     {text: minimal + "healthCheckExprs: [{apiVersion: a.org/v1, kind: Thing, current: a, failed: " + strings.Repeat("b", 2049) + "}]", bad: "spec.healthCheckExprs[0].failed"},
	"HealthCRD":      {text: minimal + "healthCheckExprs: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, current: 'true'}]", bad: "spec.healthCheckExprs[0].apiVersion"},
	"HealthPackages": {text: minimal + "healthCheckExprs: [{apiVersion: pkg.crossplane.io/v1, current: 'true'}]", bad: "spec.healthCheckExprs[0].apiVersion"},
	"HealthMany":     {text: minimal + "healthCheckExprs: [" + manyChecks(51) + "]", bad: "spec.healthCheckExprs"},

	"MaxActive":  {text: minimal + "maxActivations: 1000000001", bad: "spec.maxActivations"},
	"Unknown":    {text: minimal + "crdOwner: Nobody", bad: "spec.crdOwner"},
	"Catalogue":  {text: minimal + "catalogue: Cluster", bad: "spec.catalogue"},
	"Others":     {text: minimal + "others: Ignore", bad: "spec.others"},
	"Policy":     {text: minimal + "managementPolicy: Observe", bad: "spec.managementPolicy"},
	"Adoption":   {text: minimal + "adoption: Always", bad: "spec.adoption"},
	"Leftovers":  {text: minimal + "adoptionLeftovers: Drop", bad: "spec.adoptionLeftovers"},
	"Conflicts":  {text: minimal + "conflicts: Force", bad: "spec.conflicts"},
	"Drift":      {text: minimal + "drift: Ignore", bad: "spec.drift"},
	"Instances":  {text: minimal + "instances: Delete", bad: "spec.instances"},
	"Deactivate": {text: minimal + "deactivation: Always", bad: "spec.deactivation"},

	"Conversion":     {text: minimal + "conversion: {strategy: Inject, service: {namespace: crossplane-system, name: a, port: 9443}, caFrom: {name: ca}}"},
	"ConversionCA":   {text: minimal + "conversion: {strategy: Inject, service: {namespace: crossplane-system}}", bad: "spec.conversion"},
	"ConversionTwo":  {text: minimal + "conversion: {strategy: Inject, service: {namespace: a}, caBundle: x, caFrom: {name: ca}}", bad: "spec.conversion"},
	"ConversionSafe": {text: minimal + "conversion: {caBundle: x}", bad: "spec.conversion.strategy"},
	"NoService":      {text: minimal + "conversion: {strategy: Inject, caBundle: x}", bad: "spec.conversion.service"},
	"NoNamespace":    {text: minimal + "conversion: {strategy: Inject, service: {namespace: ''}, caBundle: x}", bad: "spec.conversion.service.namespace"},
	"ServicePort":    {text: minimal + "conversion: {strategy: Inject, service: {namespace: a, port: 65536}, caBundle: x}", bad: "spec.conversion.service.port"},
	"Strategy":       {text: minimal + "conversion: {strategy: Webhook}", bad: "spec.conversion.strategy"},

	"Ignore":         {text: minimal + "ignore: [{target: {kind: 'Deploy.*', group: apps}, paths: [/spec/replicas, /metadata/annotations/a~1b]}]"},
	"IgnoreNothing":  {text: minimal + "ignore: [{paths: []}]", bad: "spec.ignore"},
	"IgnorePath":     {text: minimal + "ignore: [{paths: [spec.replicas]}]", bad: "spec.ignore"},
	"IgnoreTilde":    {text: minimal + "ignore: [{paths: [/a~2]}]", bad: "spec.ignore"},
	"IgnoreIdentity": {text: minimal + "ignore: [{paths: [/metadata/name]}]", bad: "spec.ignore"},
	"IgnoreRegexp":   {text: minimal + "ignore: [{target: {kind: '('}, paths: [/spec]}]", bad: "spec.ignore"},

	"Approvals":         {text: minimal + "approvals: {comments: Count, byAuthor: Allow, reviews: true, approvers: [alice, 'id:12'], targets: [main, release/1.x]}"},
	"Comments":          {text: minimal + "approvals: {comments: Sometimes}", bad: "spec.approvals.comments"},
	"ByAuthor":          {text: minimal + "approvals: {byAuthor: Maybe}", bad: "spec.approvals.byAuthor"},
	"CommentsNever":     {text: minimal + "approvals: {comments: Never, reviews: true}", bad: "spec.approvals.comments"},
	"CommentsNeverTo":   {text: minimal + "approvals: {comments: Never, approvers: [alice]}", bad: "spec.approvals.comments"},
	"Approvers":         {text: minimal + "approvals: {approvers: []}", bad: "spec.approvals.approvers"},
	"Approver":          {text: minimal + "approvals: {approvers: ['a b']}", bad: "spec.approvals.approvers"},
	"ApprovalTarget":    {text: minimal + "approvals: {targets: ['v*']}", bad: "spec.approvals.targets"},
	"ApprovalTargetRef": {text: minimal + "approvals: {targets: [refs/heads/main]}", bad: "spec.approvals.targets"},
	"Trailers":          {text: minimal + "approvals: {trailers: Any}", bad: "spec.approvals"},
	"Signers":           {text: minimal + "approvals: {signers: [k]}", bad: "spec.approvals"},

	"Release":       {text: minimal + "release: [ConfigMap/team/settings, Deployment.apps/team/web, Namespace/team]"},
	"ReleaseTwice":  {text: minimal + "release: [ConfigMap/a, ConfigMap/a]", bad: "spec.release"},
	"ReleaseNoID":   {text: minimal + "release: [apps/v1/Deployment/team/web]", bad: "spec.release"},
	"AllowedKinds":  {text: minimal + `allowedKinds: [{kind: '*', names: ['[a-z]*', '\*'], namespaces: ['team-?']}, {group: '*.example.org', kind: Thing, scope: Cluster}]`},
	"AllowedNone":   {text: minimal + "allowedKinds: []", bad: "spec.allowedKinds"},
	"AllowedNoKind": {text: minimal + "allowedKinds: [{group: apps}]", bad: "spec.allowedKinds"},
	"AllowedKind":   {text: minimal + "allowedKinds: [{kind: Deployment.apps}]", bad: "spec.allowedKinds"},
	"AllowedGroup":  {text: minimal + "allowedKinds: [{group: apps/v1, kind: Deployment}]", bad: "spec.allowedKinds"},
	"AllowedGlob":   {text: minimal + "allowedKinds: [{kind: '[a'}]", bad: "spec.allowedKinds"},
	"AllowedEscape": {text: minimal + `allowedKinds: [{kind: a, names: ['a\']}]`, bad: "spec.allowedKinds"},
	"AllowedScope":  {text: minimal + "allowedKinds: [{kind: a, scope: All}]", bad: "spec.allowedKinds"},
	"AllowedWhere":  {text: minimal + "allowedKinds: [{kind: a, scope: Cluster, namespaces: [b]}]", bad: "spec.allowedKinds"},
	"AllowedEmpty":  {text: minimal + "allowedKinds: [{kind: a, namespaces: []}]", bad: "spec.allowedKinds"},
	"AllowedBlank":  {text: minimal + "allowedKinds: [{kind: a, names: ['']}]", bad: "spec.allowedKinds"},
	"References":    {text: minimal + "references: {fromSecrets: false, namespaces: [team]}"},
	"ReferencesNo":  {text: minimal + "references: {namespaces: []}", bad: "spec.references.namespaces"},
	"Activation":    {text: minimal + "activation: {allow: ['*.s3.aws.m.upbound.io', '[^a-c]x', '[a-z0-9]']}"},
	"ActivateNone":  {text: minimal + "activation: {allow: []}"},
	"ActivateCase":  {text: minimal + "activation: {allow: [Bucket.example.org]}", bad: "spec.activation.allow"},
	"ActivateSlash": {text: minimal + "activation: {allow: [a/b]}", bad: "spec.activation.allow"},
	"ActivateGlob":  {text: minimal + "activation: {allow: ['[]']}", bad: "spec.activation.allow"},

	"DependsSelf": {text: minimal + "dependsOn: [{name: a}]", bad: "spec.dependsOn"},

	"Observable":   {text: minimal + "managementPolicy: Observable\ndrift: Report"},
	"ObserveAdopt": {text: minimal + "managementPolicy: Observable\nadoption: Adopt", bad: "spec.adoption"},
	"ObserveLeft":  {text: minimal + "managementPolicy: Observable\nadoptionLeftovers: Remove", bad: "spec.adoptionLeftovers"},
	"ObserveTake":  {text: minimal + "managementPolicy: Observable\nconflicts: Take", bad: "spec.conflicts"},
	"ObservePrune": {text: minimal + "managementPolicy: Observable\ninstances: Prune", bad: "spec.instances"},
	"ObserveBack":  {text: minimal + "managementPolicy: Observable\ndeactivation: WhenUnused", bad: "spec.deactivation"},
	"ObservePast":  {text: "managementPolicy: Observable\nsource: {repo: https://git.example.org/a/b, history: FastForward}", bad: "spec.source.history"},
	"ObserveMost":  {text: minimal + "managementPolicy: Observable\nmaxPrunes: 3", bad: "spec.maxPrunes"},
	"ObserveMany":  {text: minimal + "managementPolicy: Observable\nmaxActivations: 3", bad: "spec.maxActivations"},
	"ObserveLose":  {text: minimal + "managementPolicy: Observable\nrelease: [ConfigMap/a]", bad: "spec.release"},
	"ObserveKinds": {text: minimal + "managementPolicy: Observable\nallowedKinds: [{kind: a}]", bad: "spec.allowedKinds"},
	"ObserveAllow": {text: minimal + "managementPolicy: Observable\nactivation: {allow: [a]}", bad: "spec.activation"},
	"ObserveRefs":  {text: minimal + "managementPolicy: Observable\nreferences: {fromSecrets: true}", bad: "spec.references"},
}

// manyChecks returns health checks of different kinds.
func manyChecks(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{apiVersion: a.org/v1, kind: Kind%d, current: 'true'}", i)
	}
	return strings.Join(all, ", ")
}

// The API server refuses what ValidateObject refuses, accepts what it accepts, and fills in the same defaults.
func TestObjectsOnServer(t *testing.T) {
	syncs := serveSyncs(t)
	for name, tc := range specs {
		t.Run(name, func(t *testing.T) {
			var raw map[string]any
			if err := yaml.Unmarshal([]byte(tc.text), &raw); err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind,
				"metadata": map[string]any{"name": "a", "namespace": "default"}, "spec": raw,
			}}
			var s v1alpha1.Sync
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
				t.Fatal(err)
			}
			s.Default()
			err := s.ValidateObject()
			if refused := err != nil; refused != (tc.bad != "") || refused && !strings.Contains(err.Error(), tc.bad) {
				t.Errorf("ValidateObject: %v, want a refusal of %q", err, tc.bad)
			}
			stored, err := syncs.Create(context.Background(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			switch wanted := tc.bad != "" && tc.only == ""; {
			case err == nil && wanted:
				t.Errorf("the API server accepts it, want a refusal of %s", tc.bad)
			case err != nil && !wanted:
				t.Errorf("the API server refuses it: %v", err)
			case err != nil:
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.bad) {
					t.Errorf("the API server refuses it, but not for %s: %v", tc.bad, err)
				}
			case tc.bad == "":
				sameDefaults(t, s, stored)
			}
		})
	}
}

// sameDefaults compares the defaults that the API server filled in with those of Default.
func sameDefaults(t *testing.T, s v1alpha1.Sync, stored *unstructured.Unstructured) {
	t.Helper()
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want["spec"], stored.Object["spec"]); diff != "" {
		t.Errorf("the stored spec differs from that of Default (-Default +API server):\n%s", diff)
	}
}

// serveSyncs makes the control plane of the test serve Syncs, and returns a client for those in the namespace default.
func serveSyncs(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	data, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, &crd.Object); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(fixtures.Config(t))
	config.QPS = -1
	client := dynamic.NewForConfigOrDie(config)
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("the API server refuses the CRD: %v", err)
	}
	syncs := client.Resource(v1alpha1.GroupVersion.WithResource("syncs")).Namespace("default")
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := syncs.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("Syncs are not served: %v", err)
	}
	return syncs
}
