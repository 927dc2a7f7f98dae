{{- define "rota.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 42 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" (.Release.Name | trunc 37 | trimSuffix "-") .Chart.Name }}{{ end }}
{{- end }}

{{/* Labels of everything. Call with (dict "root" $ "component" "serve"). */}}
{{- define "rota.labels" -}}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: rota
{{ include "rota.selector" . }}
{{- end }}

{{- define "rota.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "rota.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What all pods have in common. "volumeClaim" has the files of `rota admin restore collect`. */}}
{{- define "rota.pod" -}}
serviceAccountName: {{ .serviceAccount | default (include "rota.name" .root) }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
volumes:
  - name: tmp
    emptyDir: { sizeLimit: 256Mi }
  {{- with .root.Values.certificates }}
  - name: certificates
    secret: { secretName: {{ . | quote }}, defaultMode: 0440 }
  {{- end }}
  {{- with .volumeClaim }}
  - name: collected
    persistentVolumeClaim: { claimName: {{ . | quote }} }
  {{- end }}
{{- end }}

{{/* What all containers have in common: image, rights, settings and Secrets. With "ownSecrets", they
     do not read the Secrets of all processes. */}}
{{- define "rota.container" -}}
image: {{ include "rota.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
  {{- if .root.Values.certificates }}
  - { name: certificates, mountPath: /etc/rota/certificates, readOnly: true }
  {{- end }}
  {{- if .volumeClaim }}
  - { name: collected, mountPath: /var/lib/rota-collected }
  {{- end }}
env:
  {{- $own := dict "ROTA_ENV" "production" "ROTA_HOST" "0.0.0.0" "ROTA_PORT" "8080" "ROTA_METRICS_PORT" "9100" }}
  {{- $processes := .root.Values.serve.replicas }}
  {{- if .root.Values.serve.autoscaling.enabled }}
  {{- $processes = .root.Values.serve.autoscaling.maxReplicas }}
  {{- end }}
  {{- $_ := set $own "ROTA_PROCESSES" ($processes | toString) }}
  {{- range $name, $value := mergeOverwrite $own (deepCopy .root.Values.settings) (deepCopy (.part.settings | default dict)) }}
  {{- /* Helm reads numbers as floats, and would write large ones as 1e+07. */}}
  {{- if and (kindIs "float64" $value) (eq $value (floor $value)) }}{{ $value = int64 $value }}{{ end }}
  - { name: {{ $name }}, value: {{ $value | toString | quote }} }
  {{- end }}
{{- $shared := ternary list .root.Values.secrets (.ownSecrets | default false) }}
{{- with concat $shared (.part.secrets | default list) }}
envFrom:
  {{- range . }}
  - secretRef: { name: {{ . | quote }} }
  {{- end }}
{{- end }}
{{- end }}

{{/* Where pods of a deployment run. */}}
{{- define "rota.placement" -}}
{{- $selector := include "rota.selector" . }}
{{- with .root.Values.topologySpread }}
{{- if .enabled }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: {{ .zones }}
    labelSelector:
      matchLabels: {{ $selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ .nodes }}
    labelSelector:
      matchLabels: {{ $selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $.part $key }}
{{ $key }}: {{ if kindIs "string" . }}{{ . | quote }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A container that answers HTTP requests: ports, probes and resources. */}}
{{- define "rota.http" -}}
ports:
  - { name: http, containerPort: 8080 }
  - { name: metrics, containerPort: 9100 }
resources: {{ toYaml .resources | nindent 2 }}
startupProbe:
  httpGet: { path: /health/live, port: http }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /health/live, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /health/ready, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
# The load balancer needs a moment to notice that the pod ends.
lifecycle:
  preStop:
    sleep: { seconds: 5 }
{{- end }}

{{/* The parts that run all the time. */}}
{{- define "rota.deployments" -}}
serve worker{{ if .Values.router.enabled }} router{{ end }}
{{- end }}

{{/* Which part clients reach. Where there are routers, they reach the cells through them. */}}
{{- define "rota.entrance" -}}
{{ ternary "router" "serve" .Values.router.enabled }}
{{- end }}

{{/* The Service of a part. The values of `service` are for the one that clients reach. */}}
{{- define "rota.service" -}}
{{- $reached := eq .component (include "rota.entrance" .root) }}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "rota.name" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{ include "rota.labels" . | nindent 4 }}
  {{- if $reached }}
  {{- with .root.Values.service.annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
spec:
  type: {{ ternary .root.Values.service.type "ClusterIP" $reached }}
  selector: {{ include "rota.selector" . | nindent 4 }}
  ports:
    - { name: http, port: {{ .root.Values.service.port }}, targetPort: http }
{{- end }}
