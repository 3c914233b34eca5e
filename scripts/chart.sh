#!/usr/bin/env bash
# Checks the Helm chart: lint, the manifests that it renders against Kubernetes' schemas, and that they fit the daemon. The schemas
# are those of the package kubernetes-validate, for the oldest version of Kubernetes that the chart supports and the newest it has.
# Needs Go and Python.
set -euo pipefail
cd "$(dirname "$0")/.."

chart=deploy/helm/tidemark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

helm() { go run helm.sh/helm/v3/cmd/helm@v3.22.0 "$@"; }
kubeconform() { go run github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 "$@"; }
fail() { echo "chart.sh: $*" >&2; exit 1; }

python3 -m venv "$work/python"
"$work/python/bin/pip" install --quiet --only-binary :all: kubernetes-validate==1.37.0
schemas=$("$work/python/bin/python" -c 'import importlib.resources as r; print(r.files("kubernetes_validate") / "kubernetes-json-schema")')

# The schemas refer to each other by an address of their own.
for version in 1.27.0 1.37.0; do
	mkdir -p "$work/$version"
	for file in "$schemas/v$version-local-strict"/{_definitions,configmap-v1,deployment-apps-v1,job-batch-v1,poddisruptionbudget-policy-v1,service-v1,serviceaccount-v1}.json; do
		sed 's|/api/_definitions|_definitions|; s|"$id": "[^"]*"|"$comment": ""|' "$file" >"$work/$version/${file##*/}"
	done
done

secrets=(--set database.existingSecret=daemon,migrate.existingSecret=installer)
render() { helm template release "$chart" --kube-version 1.37.0 "${secrets[@]}" "$@"; }

helm lint --strict "$chart" "${secrets[@]}"
render >"$work/default.yaml"
cat >"$work/values.yaml" <<'END'
replicas: 3
stopTimeoutSeconds: 120
image: {digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
imagePullSecrets: [{name: registry}]
config: {secrets: {billing: "${env:BILLING_KEY}"}, lease: 45s}
env: [{name: OTEL_SERVICE_NAME, value: tidemark}]
envFrom: [{secretRef: {name: keys}}]
migrate: {rolePrefix: shop_}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
serviceAccount: {annotations: {example/role: a}}
podAnnotations: {example/a: b}
podLabels: {team: shop}
nodeSelector: {kubernetes.io/arch: arm64}
tolerations: [{key: a, operator: Exists}]
extraVolumes: [{name: ca, secret: {secretName: database-ca}}]
extraVolumeMounts: [{name: ca, mountPath: /etc/tidemark-ca, readOnly: true}]
END
render -f "$work/values.yaml" >"$work/all.yaml"
for version in 1.27.0 1.37.0; do
	# ServiceMonitor is no kind of Kubernetes itself: its schema is not among these.
	kubeconform -strict -summary -skip ServiceMonitor -schema-location "$work/$version/{{.ResourceKind}}{{.KindSuffix}}.json" "$work"/{default,all}.yaml
done

has() { grep -qF -- "$2" "$work/$1.yaml" || fail "$1.yaml lacks: $2"; }
has default "replicas: 2"
has default "maxUnavailable: 1"
has default "unhealthyPodEvictionPolicy: AlwaysAllow"
has default "terminationGracePeriodSeconds: 45"
has default "stop_timeout: 20s"
has all "terminationGracePeriodSeconds: 145"
has all "stop_timeout: 120s"
has all "args: [migrate, up, --role-prefix, shop_]"
has all "kind: ServiceMonitor"
has all "honorLabels: true"
has all "{targetLabel: job, replacement: tidemark}"
for what in "secretName: database-ca" "mountPath: /etc/tidemark-ca"; do
	[ "$(grep -cF "$what" "$work/all.yaml")" = 2 ] || fail "not in the Deployment and the Job: $what"
done
# helm template leaves out the notes.
cp -r "$chart" "$work/chart"
{
	printf 'kind: ConfigMap\napiVersion: v1\nmetadata: {name: notes}\ndata:\n  notes: |\n'
	sed 's/^/    /' "$chart/templates/NOTES.txt"
} >"$work/chart/templates/notes.yaml"
helm template release "$work/chart" --kube-version 1.37.0 "${secrets[@]}" --set migrate.rolePrefix=shop_ --show-only templates/notes.yaml >"$work/notes.yaml"
has notes "grant shop_tidemark_executor, shop_tidemark_reader to LOGIN;"
[ "$(grep -c 'readOnlyRootFilesystem: true' "$work/default.yaml")" = 2 ] || fail "a container may write to its image"
[ "$(grep -A1 'secretKeyRef' "$work/default.yaml" | grep -c 'name: daemon\|name: installer')" = 2 ] || fail "the daemon and the installer share a login"

# The configuration is one for the daemon.
awk '/tidemark.yaml: \|/ {inside = 1; next} inside && !/^    / {inside = 0} inside' "$work/all.yaml" | sed 's/^    //' >"$work/tidemark.yaml"
BILLING_KEY=whsec_$(head -c 32 /dev/urandom | base64 -w0) TIDEMARK_DATABASE_URL=postgres:///app \
	go run ./cmd/tidemark config validate --config "$work/tidemark.yaml"

refused() {
	local says=$1
	shift
	if helm template release "$chart" --kube-version 1.37.0 "$@" >"$work/out" 2>&1; then fail "not refused: $*"; fi
	grep -q -- "$says" "$work/out" || fail "refused without '$says': $(cat "$work/out")"
}
refused "database.existingSecret: name the Secret" --set migrate.existingSecret=installer
refused "migrate.existingSecret: name the Secret" --set database.existingSecret=daemon
refused "config" "${secrets[@]}" --set config.stop_timeout=1h
refused "replica" "${secrets[@]}" --set replica=1
echo "the chart is sound"
