"""Calls of libraries that accept arrays, as their users write them.

`xp` is NumPy or `xstack.numpy`; the names of `OPERANDS` are arrays of it. Calls are separated by
semicolons, those of matplotlib are what a figure draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_draws = np.random.RandomState(0)
_square = _draws.randn(4, 4)
OPERANDS: dict[str, Any] = {
    "x": _draws.randn(12), "y": _draws.randn(12), "t": np.arange(12.0), "v": _draws.randn(4),
    "p": _draws.rand(12) * 0.8 + 0.1, "q": _draws.rand(12) * 0.8 + 0.1,
    "m": _draws.randn(6, 4), "r": _draws.rand(6, 4), "sq": _square @ _square.T + 4 * np.eye(4),
    "points": _draws.randn(12, 2), "k": _draws.randint(0, 3, 12), "b": _draws.rand(12) > 0.5,
    "c": _draws.randn(4) + 1j * _draws.randn(4), "h": _draws.randn(5).astype(np.float16),
    "f": _draws.randn(5).astype(np.float32), "image": _draws.rand(4, 5, 3),
    "u": np.arange(5, dtype=np.uint8), "s": np.array(2.5), "e": np.zeros((0,)),
}  # fmt: skip

CALLS = {
"special": """
special.expit(x); special.erf(x); special.gammaln(x+1); special.logit(p); special.entr(p);
special.rel_entr(p,q); special.xlogy(p,q); special.xlog1py(p,q); special.log_softmax(x);
special.softmax(x); special.logsumexp(x); special.logsumexp(m, axis=1); special.i0(x);
special.i1e(x); special.betaln(p,q); special.gammainc(p+1,q+1); special.betainc(p,q,q);
special.ndtri(p); special.ndtr(x); special.log_ndtr(x); special.chdtr(p+1,q);
special.stdtr(p+1,q); special.stdtrit(p+1,q); special.zeta(p+2,q); special.polygamma(1,q);
special.softplus(x); special.expm1(x); special.sinc(x); special.hyp2f1(p,q,p+1,q);
special.digamma(q); special.kl_div(p,q); special.huber(p,q); special.erfinv(p);
special.bdtr(p,5,q); special.nbdtr(3,5,q); special.logsumexp(m, axis=0, b=m, return_sign=True);
special.comb(5,2); special.jn(1,x); special.ellipk(p); special.lambertw(q);
""",
"stats": """
stats.zscore(x); stats.zscore(m,axis=1); stats.skew(x); stats.kurtosis(m,axis=1);
stats.moment(x,3); stats.pearsonr(x,y); stats.spearmanr(x,y); stats.kendalltau(x,y);
stats.ttest_1samp(x,0.); stats.ttest_ind(x,y); stats.ttest_rel(x,y); stats.linregress(x,y);
stats.gmean(p); stats.hmean(p); stats.pmean(p,2); stats.entropy(p); stats.iqr(x);
stats.describe(x); stats.trim_mean(x,0.1); stats.variation(p); stats.sem(x); stats.chisquare(p);
stats.power_divergence(p); stats.bartlett(x,y); stats.levene(x,y); stats.f_oneway(x,y);
stats.kruskal(x,y); stats.mannwhitneyu(x,y); stats.wilcoxon(x,y); stats.ks_2samp(x,y);
stats.ks_1samp(x,stats.norm.cdf); stats.jarque_bera(x); stats.normaltest(x); stats.skewtest(x);
stats.kurtosistest(x); stats.shapiro(x); stats.anderson(x,'norm',method='interpolate');
stats.cramervonmises(x,'norm'); stats.boxcox(p); stats.yeojohnson(x); stats.gaussian_kde(x);
stats.bootstrap((x,),np.mean,n_resamples=20,rng=0);
stats.permutation_test((x,y),lambda a,b,axis=-1:a.mean(axis=axis)-b.mean(axis=axis),\
n_resamples=20,rng=0); stats.quantile(x,p); stats.rankdata(x); stats.mode(x); stats.zmap(x,y);
stats.gzscore(p); stats.gstd(p); stats.circmean(x); stats.circvar(x); stats.circstd(x);
stats.directional_stats(m); stats.combine_pvalues(p); stats.false_discovery_control(p);
stats.lmoment(x); stats.tmean(x,(-1,1)); stats.tvar(x,(-1,1)); stats.tstd(x,(-1,1));
stats.tsem(x,(-1,1)); stats.tmin(x,-1); stats.tmax(x,1); stats.norm.pdf(x);
stats.norm.logcdf(x); stats.Normal(mu=0.,sigma=1.).pdf(x); stats.wasserstein_distance(x,y);
stats.energy_distance(x,y);
stats.monte_carlo_test(x,lambda size:np.random.default_rng(0).normal(size=size),lambda a,\
axis=-1:a.mean(axis=axis),n_resamples=20); stats.expectile(x,.3); stats.differential_entropy(x);
stats.alexandergovern(x,y); stats.fligner(x,y); stats.ansari(x,y); stats.brunnermunzel(x,y);
stats.mood(x,y); stats.epps_singleton_2samp(x,y); stats.cumfreq(x); stats.relfreq(x);
stats.binned_statistic(x,y); stats.percentileofscore(x,0.); stats.siegelslopes(x,y);
stats.theilslopes(x,y); stats.weightedtau(x,y); stats.somersd(x,y); stats.pointbiserialr(b,x);
stats.chatterjeexi(x,y); stats.sigmaclip(x); stats.trimboth(x,.1); stats.obrientransform(x,y);
stats.median_abs_deviation(x); stats.kstat(x,2); stats.kstatvar(x);
stats.fit(stats.norm,x,{'loc':(-3,3),'scale':(.1,5)}); stats.ecdf(x);
stats.tiecorrect(stats.rankdata(y)); stats.vonmises.cdf(x,2.); stats.norm.fit(x);
""",
"fft": """
fft.fft(x); fft.ifft(x); fft.rfft(x); fft.irfft(x); fft.fft2(m); fft.rfftn(m); fft.hfft(x);
fft.ihfft(x); fft.fftshift(x); fft.ifftshift(x); fft.dct(x); fft.dctn(m); fft.idst(x);
fft.fht(p,.1,.2); fft.next_fast_len(7); fft.fftn(m,axes=(0,)); fft.hfft2(m);
fft.rfft2(m,s=(4,4)); fft.fftfreq(5,xp=xp); fft.rfftfreq(5,xp=xp);
""",
"signal": """
signal.convolve(x,y); signal.fftconvolve(x,y); signal.oaconvolve(x,y); signal.correlate(x,y);
signal.convolve2d(m,m); signal.correlate2d(m,m); signal.hilbert(x); signal.detrend(x);
signal.lfilter(p[:3],xp.asarray([1.,.2,.1]),x); signal.filtfilt(p[:3],xp.asarray([1.,.2,.1]),x);
signal.sosfilt(xp.asarray([[1.,.2,.1,1.,.1,.2]]),x); signal.medfilt(x); signal.wiener(x);
signal.savgol_filter(x,5,2); signal.resample(x,20); signal.resample_poly(x,2,1);
signal.decimate(xp.concat([x,x,x,x]),2); signal.welch(x); signal.periodogram(x);
signal.csd(x,y); signal.coherence(x,y,nperseg=4); signal.spectrogram(x,nperseg=4);
signal.stft(x,nperseg=4); signal.find_peaks(x); signal.argrelmax(x); signal.chirp(p,1.,1.,2.);
signal.sawtooth(x); signal.square(x); signal.gausspulse(x); signal.unit_impulse(5);
signal.freqz(p); signal.sosfreqz(xp.asarray([[1.,.2,.1,1.,.1,.2]])); signal.zpk2tf(p,q,1.);
signal.tf2zpk(p,q); signal.tf2sos(p[:3],q[:3]); signal.lfilter_zi(p[:3],q[:3]);
signal.butter(3,.2); signal.firwin(5,.2);
signal.firwin2(9,xp.asarray([0.,.5,1.]),xp.asarray([1.,1.,0.]));
signal.remez(9,xp.asarray([0.,.1,.2,.5]),xp.asarray([1.,0.])); signal.bilinear(p[:3],q[:3]);
signal.minimum_phase(signal.firwin(9,.2)); signal.deconvolve(x,p[:3]); signal.upfirdn(p,x,2);
signal.czt(x); signal.zoom_fft(x,[.1,.3]); signal.lombscargle(x,y,p+1); signal.envelope(x);
signal.windows.hann(5,xp=xp); signal.windows.kaiser(5,3.,xp=xp);
signal.get_window('hamming',5,xp=xp); signal.vectorstrength(p,2.); signal.hilbert2(m);
signal.order_filter(x,xp.ones(3),1); signal.sepfir2d(m,p[:3],p[:3]); signal.cspline1d(x);
signal.unique_roots(p); signal.residue(p[:2],q[:3]); signal.group_delay((p,q));
signal.peak_prominences(x,xp.asarray([1])); signal.medfilt2d(m); signal.choose_conv_method(x,y);
signal.max_len_seq(3); signal.iirnotch(.1,3.); signal.normalize(p,q); signal.lp2hp(p,q);
signal.invres(p[:2],q[:2],p[:1]);
""",
"integrate": """
integrate.trapezoid(x,y); integrate.trapezoid(m,axis=0); integrate.cumulative_trapezoid(x);
integrate.simpson(x); integrate.cumulative_simpson(x); integrate.romb(x[:9]);
integrate.fixed_quad(xp.sin,0.,1.); integrate.quad(lambda t: float(xp.sin(t)),0.,1.);
integrate.quad_vec(lambda t: t*x,0.,1.); integrate.solve_ivp(lambda t,y:-y,(0.,1.),x);
integrate.solve_ivp(lambda t,y:-xp.asarray(y),(0.,1.),x);
integrate.tanhsinh(xp.sin,xp.asarray(0.),xp.asarray(1.));
integrate.nsum(lambda k:1/k**2,xp.asarray(1.),xp.asarray(100.));
integrate.cubature(lambda z: xp.sum(z,axis=-1),xp.zeros(2),xp.ones(2));
integrate.dblquad(lambda a,b:float(xp.sin(a*b)),0,1,0,1);
""",
"optimize": """
optimize.minimize(lambda z: float(xp.sum((xp.asarray(z)-1)**2)),x);
optimize.minimize(lambda z: xp.sum((z-1)**2),x,method='Nelder-Mead',options={'maxiter':20});
optimize.minimize(lambda z: xp.sum((xp.asarray(z)-1)**2),x,jac=lambda z:2*(xp.asarray(z)-1));
optimize.minimize(lambda z: xp.sum((xp.asarray(z)-1)**2),x,jac=lambda z:2*(xp.asarray(z)-1),\
method='L-BFGS-B');
optimize.minimize(lambda z: xp.sum((xp.asarray(z)-1)**2),x,jac=lambda z:2*(xp.asarray(z)-1),\
hess=lambda z:2*xp.eye(12),method='trust-exact');
optimize.least_squares(lambda z: xp.asarray(z)-1,x);
optimize.least_squares(lambda z: xp.asarray(z)-1,x,jac=lambda z: xp.eye(12));
optimize.root(lambda z: xp.asarray(z)**3-1,p); optimize.fsolve(lambda z: xp.asarray(z)**3-1,p);
optimize.curve_fit(lambda t,a,c: a*t+c,x,y); optimize.brentq(lambda t: float(xp.sin(t)),3.,4.);
optimize.newton(lambda t: xp.sin(t),3.*xp.ones(3));
optimize.linprog(p,A_ub=-xp.eye(12),b_ub=-q); optimize.linear_sum_assignment(m);
optimize.differential_evolution(lambda z: xp.sum(xp.asarray(z)**2),[(-1,1)]*2,rng=0,maxiter=3);
optimize.minimize_scalar(lambda t: (t-1)**2); optimize.milp(p,bounds=(0,1)); optimize.rosen(x);
optimize.rosen_der(x); optimize.rosen_hess(x);
optimize.approx_fprime(x,lambda z: xp.sum(xp.asarray(z)**2));
optimize.check_grad(lambda z: xp.sum(xp.asarray(z)**2),lambda z: 2*xp.asarray(z),x);
optimize.elementwise.find_root(lambda t: t**3-2,(xp.asarray([0.,1.]),xp.asarray([2.,3.])));
optimize.elementwise.find_minimum(lambda t: (t-1)**2,(xp.asarray(-1.),xp.asarray(.5),\
xp.asarray(3.))); optimize.elementwise.bracket_root(lambda t:t-3,xp.asarray([0.,1.]));
optimize.line_search(lambda z: xp.sum(xp.asarray(z)**2),lambda z:2*xp.asarray(z),x,-x);
optimize.bisect(lambda t: float(t-1),0.,3.);
""",
"differentiate": """
differentiate.derivative(xp.exp,x); differentiate.jacobian(lambda z: z**2,x);
differentiate.hessian(lambda z: xp.sum(z**2,axis=0),x[:3]);
""",
"linalg": """
linalg.inv(sq); linalg.solve(sq,v); linalg.det(sq); linalg.eigh(sq); linalg.eig(sq);
linalg.svd(m); linalg.qr(m); linalg.lu(sq); linalg.lu_factor(sq); linalg.cholesky(sq);
linalg.cho_solve(linalg.cho_factor(sq),v); linalg.expm(sq); linalg.logm(sq); linalg.sqrtm(sq);
linalg.schur(sq); linalg.lstsq(m,xp.ones(m.shape[0])); linalg.pinv(m); linalg.norm(m);
linalg.block_diag(sq,sq); linalg.toeplitz(x); linalg.circulant(x);
linalg.solve_triangular(sq,v); linalg.null_space(m); linalg.orth(m); linalg.hadamard(4);
linalg.khatri_rao(m,m); linalg.polar(sq); linalg.hessenberg(sq); linalg.qz(sq,sq);
linalg.solve_sylvester(sq,sq,sq); linalg.solve_toeplitz(x+30*xp.eye(12)[0],y);
linalg.solve_banded((0,0),p[None],x); linalg.eigvals_banded(p[None]); linalg.ldl(sq);
linalg.subspace_angles(m.T[:, :2],m.T[:, 2:]); linalg.funm(sq,lambda a:a**2);
linalg.companion(p); linalg.fractional_matrix_power(sq,.5); linalg.matrix_balance(sq);
linalg.interpolative.svd(sq,2); linalg.bandwidth(sq); linalg.issymmetric(sq); linalg.tanm(sq);
linalg.expm_frechet(sq,sq); linalg.svdvals(m); linalg.eigvalsh(sq);
linalg.solve_continuous_lyapunov(sq,sq); linalg.orthogonal_procrustes(m,m);
linalg.rsf2csf(*linalg.schur(sq)); linalg.cossin(linalg.qr(sq)[0],2,2); linalg.leslie(p,q[:-1]);
linalg.convolution_matrix(p,3); linalg.blas.ddot(x,y); linalg.lapack.dpotrf(sq); linalg.dft(4);
""",
"ndimage": """
ndimage.gaussian_filter(m,1.); ndimage.uniform_filter(m,3); ndimage.convolve(m,xp.ones((3,3)));
ndimage.correlate1d(x,xp.ones(3)); ndimage.sobel(m); ndimage.laplace(m);
ndimage.median_filter(m,3); ndimage.maximum_filter(m,3); ndimage.rotate(m,30.);
ndimage.zoom(m,2); ndimage.shift(m,1.); ndimage.affine_transform(m,xp.eye(2));
ndimage.map_coordinates(m,xp.ones((2,4))); ndimage.label(m>0); ndimage.center_of_mass(m);
ndimage.sum_labels(m); ndimage.mean(m); ndimage.binary_dilation(m>0);
ndimage.binary_fill_holes(m>0); ndimage.grey_erosion(m,3); ndimage.distance_transform_edt(m>0);
ndimage.generic_filter(m,np.mean,3); ndimage.spline_filter(m); ndimage.fourier_gaussian(m,1.);
ndimage.histogram(m,0,1,3); ndimage.extrema(m);
ndimage.find_objects(xp.asarray([[1,1,0],[0,2,2]])); ndimage.percentile_filter(m,30,3);
ndimage.geometric_transform(m,lambda c:c); ndimage.white_tophat(m,3);
ndimage.watershed_ift(xp.asarray(m>0,dtype=xp.uint8),xp.asarray(m>1,dtype=xp.int8));
ndimage.vectorized_filter(m,np.mean,size=3);
""",
"interpolate": """
interpolate.CubicSpline(t,x)(p); interpolate.PchipInterpolator(t,x)(p);
interpolate.Akima1DInterpolator(t,x)(p); interpolate.BarycentricInterpolator(t,x)(p);
interpolate.make_interp_spline(t,x)(p); interpolate.BSpline(t,x[:8],3)(p);
interpolate.interp1d(t,x)(p);
interpolate.RegularGridInterpolator((t,t),xp.ones((12,12)))(m[:,:2]*0+1);
interpolate.RBFInterpolator(m,m[:,0])(m); interpolate.griddata(points,x,points*.5+.1);
interpolate.UnivariateSpline(t,x)(p); interpolate.splrep(t,x); interpolate.splprep([x,y]);
interpolate.LinearNDInterpolator(points,x)(points*.5+.1);
interpolate.PPoly(m,t[:m.shape[1]+1])(p); interpolate.lagrange(t[:4],x[:4]);
interpolate.krogh_interpolate(t[:4],x[:4],p); interpolate.AAA(t,x)(p);
interpolate.make_smoothing_spline(t,x)(p); interpolate.NearestNDInterpolator(points,x)(points);
interpolate.approximate_taylor_polynomial(xp.exp,0.,3,1.);
""",
"spatial": """
spatial.distance.pdist(m); spatial.distance.cdist(m,m);
spatial.distance.squareform(spatial.distance.pdist(m)); spatial.distance.euclidean(x,y);
spatial.distance.cosine(x,y); spatial.KDTree(m).query(m); spatial.ConvexHull(points);
spatial.Delaunay(points); spatial.Voronoi(points);
spatial.transform.Rotation.from_rotvec(m[:,:3]).apply(m[:,:3]);
spatial.transform.Rotation.from_euler('xyz',xp.asarray([.1,.2,.3])).as_matrix();
spatial.transform.Rotation.from_quat(xp.asarray([0.,0.,0.,1.])).as_quat();
spatial.transform.Slerp([0,1],spatial.transform.Rotation.from_rotvec(m[:2,:3]))(.5);
spatial.procrustes(m,m*2); spatial.geometric_slerp(xp.asarray([1.,0.]),xp.asarray([0.,1.]),p);
spatial.distance_matrix(m,m);
spatial.transform.RigidTransform.from_translation(xp.ones(3)).apply(m[:,:3]);
spatial.distance.directed_hausdorff(m,m);
""",
"cluster": """
cluster.vq.whiten(m); cluster.vq.vq(m,m[:2]); cluster.vq.kmeans(m,2,rng=0);
cluster.vq.kmeans2(m,m[:2]); cluster.hierarchy.linkage(m);
cluster.hierarchy.fcluster(cluster.hierarchy.linkage(m),2.);
cluster.hierarchy.cophenet(cluster.hierarchy.linkage(m));
cluster.hierarchy.dendrogram(cluster.hierarchy.linkage(m),no_plot=True);
cluster.hierarchy.leaves_list(cluster.hierarchy.linkage(m));
""",
"sparse": """
sparse.csr_array(m)@xp.ones(4); sparse.coo_array((x,(xp.arange(12),xp.arange(12)))).toarray();
sparse.csr_array(np.eye(12))@x; x@sparse.csr_array(np.eye(12));
sparse.csr_array(np.eye(12)).multiply(x); sparse.linalg.cg(sparse.csr_array(np.eye(12)),x);
sparse.linalg.spsolve(sparse.csc_array(np.eye(12)),x);
sparse.linalg.LinearOperator((12,12),matvec=lambda z: 2*xp.asarray(z))@x;
sparse.linalg.gmres(sparse.linalg.LinearOperator((12,12),matvec=lambda z: 2*xp.asarray(z)),x);
sparse.linalg.eigsh(sparse.csr_array(np.diag(np.arange(12.))),k=2,v0=x);
sparse.linalg.expm_multiply(sparse.csr_array(np.eye(12)),x);
sparse.csgraph.dijkstra(sparse.csr_array(xp.abs(sq))); sparse.csgraph.shortest_path(xp.abs(sq));
sparse.kron(sq,sq); sparse.block_diag([sq,sq]); sparse.vstack([sparse.csr_array(sq)]*2);
sparse.linalg.svds(sparse.csr_array(m),k=2,v0=xp.ones(4),rng=0);
sparse.linalg.lsqr(sparse.csr_array(m),xp.ones(m.shape[0]));
sparse.csr_array(np.eye(12))[xp.asarray([0,2])]; sparse.csr_array(np.eye(12))[0,:];
sparse.random_array((3,3),rng=0);
""",
"matplotlib": """
plt.plot(x); plt.plot(x,y,'o-'); plt.plot(r); plt.plot(s,s,'o');
plt.scatter(x,y,c=k,s=abs(y)*20); plt.scatter(x,y,c=x); plt.bar(xp.arange(12),abs(x));
plt.barh(k,x); plt.hist(x,bins=5); plt.hist(r);
plt.hist(x,bins=xp.linspace(-2,2,7),weights=abs(y)); plt.hist([x,y]); plt.hist2d(x,y);
plt.hexbin(x,y,gridsize=5); plt.imshow(r); plt.imshow(image); plt.imshow(b.reshape(3,4));
plt.imshow(r.astype('float16')); plt.imshow(u.reshape(1,5));
plt.imshow(r,extent=xp.asarray([0.,1.,0.,2.])); plt.matshow(r); plt.pcolormesh(r);
plt.pcolormesh(xp.arange(5.),xp.arange(7.),r); plt.contour(r);
plt.contourf(r,levels=xp.linspace(0,1,5)); plt.quiver(x,y,y,x);
plt.streamplot(xp.arange(4.),xp.arange(6.),r,r); plt.boxplot(x); plt.boxplot(r);
plt.violinplot(r); plt.errorbar(x,y,yerr=abs(x)); plt.fill_between(xp.arange(12),x,y,where=x>y);
plt.stem(x); plt.step(xp.arange(12),x); plt.pie(abs(x)); plt.stackplot(xp.arange(4),r);
plt.eventplot(x); plt.semilogy(abs(x)); plt.loglog(abs(x),abs(y)); plt.polar(x,abs(y));
plt.axhline(s); plt.axvline(x[0]); plt.xlim(x.min(),x.max()) ,  plt.ylim(-s,s);
plt.xticks(xp.arange(3)); plt.text(x[0],y[0],f'{s:.2f}'); plt.annotate('a',(x[0],y[0]));
plt.hlines(x,0,1); plt.vlines(x,0,y); plt.specgram(xp.tile(x,40),NFFT=16,noverlap=8);
plt.psd(xp.tile(x,40)); plt.acorr(x); plt.spy(b.reshape(3,4)); plt.tricontourf(x,y,x);
plt.triplot(x,y);
plt.axes(projection='3d').plot_surface(*xp.meshgrid(xp.arange(4.),xp.arange(6.)),r);
plt.axes(projection='3d').scatter(x,y,x); plt.axes(projection='3d').voxels(b.reshape(2,2,3));
plt.ecdf(x); plt.stairs(x); plt.colorbar(plt.imshow(r)); plt.plot(c.real,c.imag); plt.plot(h);
plt.fill(x,y); plt.broken_barh([(x[0],1.)],(0,1)); plt.plot(x,color=image[0,0]);
plt.scatter(x,y,color=image.reshape(-1,3)[:12]); plt.legend(plt.plot(r),['a','b','c','d']);
plt.axis(xp.asarray([0.,1.,0.,1.])); plt.gca().set(xlim=(x[0],x[0]+2));
plt.gca().add_patch(plt.Circle((x[0],y[0]),s)); plt.figimage(r); plt.table(r); plt.plot(e);
plt.imshow(r,norm=matplotlib.colors.LogNorm(vmin=r.min()+.1,vmax=r.max()));
plt.imshow(matplotlib.colormaps['viridis'](r));
plt.bar(['a','b','c','d'],r[0],yerr=r[1],bottom=r[2]); plt.grouped_bar([x,y]);
""",
"pandas": """
pd.Series(x); pd.Series(x,index=k); pd.Series(s); pd.DataFrame(m);
pd.DataFrame({'a':x,'b':k,'c':b}); pd.DataFrame({'a':x}).assign(z=y);
pd.DataFrame(m,columns=list('abcd'),index=xp.arange(6)); pd.Series(x)+y; y+pd.Series(x);
pd.Series(x)*s; s*pd.Series(x); x[0]*pd.Series(x); pd.Series(x)>y; x<pd.Series(y);
pd.DataFrame(m)@m.T; m.T@pd.DataFrame(m); pd.DataFrame(m)+m; m+pd.DataFrame(m);
pd.DataFrame(m)*m[0]; pd.Series(np.asarray(x))[k]; pd.Series(x).loc[k]; pd.Series(x).iloc[k];
pd.Series(x)[b]; pd.Series(x).where(b); pd.cut(x,3).codes;
pd.cut(x,xp.asarray([-5.,0.,5.])).codes; pd.qcut(x,3).codes; pd.Categorical(k).codes;
pd.factorize(k)[0]; pd.unique(k); pd.Series(k).map({0:5,1:6,2:7});
pd.concat([pd.Series(x),pd.Series(y)]); pd.Series(x).groupby(k).mean();
pd.DataFrame({'a':x,'k':k}).groupby('k').mean(); pd.crosstab(k,b); pd.Index(k);
pd.Index(x).get_indexer(x); pd.to_datetime(k,unit='D'); pd.to_timedelta(k,unit='s');
pd.Series(x).fillna(s); pd.isna(x); pd.array(k); pd.Series(x).rolling(3).mean();
pd.DataFrame({'a':[x,y]}); pd.Series({'a':x[0],'b':x[1]}); pd.Series([x[0],x[1]]);
pd.Series(list(x)); pd.DataFrame(list(m)); pd.Series(x).clip(-s,s);
pd.Series(x).searchsorted(s); pd.get_dummies(k); pd.DataFrame(x[:,None]);
xp.asarray(pd.Series(x)); xp.asarray(pd.DataFrame(m)); xp.sin(pd.Series(x).to_numpy());
xp.mean(xp.asarray(pd.Series(k))); np.sin(pd.Series(x)); pd.Series(h); pd.Series(c);
pd.DataFrame(m).iloc[0,:]-m[0]; pd.Series(x).corr(pd.Series(y));
pd.DataFrame(m).apply(lambda row: xp.sum(xp.asarray(row)));
pd.Series(x).map(lambda v: float(xp.sin(v))); pd.MultiIndex.from_arrays([k,b]);
pd.Series(x).set_axis(xp.arange(12)); pd.DataFrame(m).set_index(xp.arange(6));
pd.DataFrame(m).to_numpy()@x[:4]; pd.Series(x).repeat(k); pd.Series(x).take(k);
pd.IntervalIndex.from_breaks(xp.arange(4.)).left; pd.date_range('2020',periods=int(k[0])+2);
pd.Series(x,dtype='float32'); pd.Series(k,dtype='category').cat.codes;
pd.DataFrame({'a':s},index=[0,1]); pd.Series(x).eq(y);
pd.eval('a+1',local_dict={'a':pd.Series(x)});
pd.merge(pd.DataFrame({'k':k,'x':x}),pd.DataFrame({'k':[0,1,2]}),on='k');
""",
"xarray": """
xr.DataArray(x); xr.DataArray(m,dims=('a','b')).sum('a'); xr.DataArray(m,dims=('a','b')).mean();
xr.DataArray(m,dims=('a','b'),coords={'a':xp.arange(6)}).sel(a=2); xr.DataArray(x)+1;
xr.DataArray(x)+y; y+xr.DataArray(x);
xr.DataArray(m,dims=('a','b'))*xr.DataArray(x[:4],dims='b'); np.sin(xr.DataArray(x));
xr.apply_ufunc(xp.sin,xr.DataArray(x)); xr.DataArray(m,dims=('a','b')).transpose('b','a');
xr.DataArray(m,dims=('a','b')).isel(a=1); xr.DataArray(m,dims=('a','b')).isel(a=k[:2]);
xr.DataArray(m,dims=('a','b')).stack(z=('a','b'));
xr.concat([xr.DataArray(x,dims='t'),xr.DataArray(y,dims='t')],'n');
xr.Dataset({'v':('t',x),'w':('t',y)}).to_dataframe(); xr.DataArray(m,dims=('a','b')).std('a');
xr.DataArray(m,dims=('a','b')).max('a'); xr.DataArray(m,dims=('a','b')).argmax('a');
xr.DataArray(x,dims='t').where(x>0); xr.where(xr.DataArray(x)>0,1.,0.);
xr.DataArray(m,dims=('a','b')).dot(xr.DataArray(m,dims=('a','b')));
xr.DataArray(x,dims='t').cumsum('t'); xr.DataArray(x,dims='t').rolling(t=3).mean();
xr.DataArray(x,dims='t').diff('t'); xr.DataArray(x,dims='t').shift(t=1);
xr.DataArray(x,dims='t').coarsen(t=3).mean();
xr.DataArray(x,dims='t',coords={'t':xp.arange(12.)}).interp(t=[.5,1.5]);
xr.DataArray(x,dims='t',coords={'t':xp.arange(12.)}).integrate('t');
xr.DataArray(x,dims='t',coords={'t':xp.arange(12.)}).differentiate('t');
xr.DataArray(x,dims='t').groupby(xr.DataArray(k,dims='t',name='k')).mean();
xr.DataArray(x,dims='t').fillna(0.); xr.DataArray(x,dims='t').isnull();
xr.DataArray(x,dims='t').clip(-1,1); xr.DataArray(x,dims='t').astype('float32');
xr.DataArray(x,dims='t').quantile(.3); xr.DataArray(x,dims='t').median();
xr.DataArray(x,dims='t').var(); xr.DataArray(x,dims='t').round(2);
xr.DataArray(m,dims=('a','b')).pad(a=1); xr.DataArray(m,dims=('a','b')).roll(a=1);
xr.DataArray(x,dims='t').sortby(xr.DataArray(y,dims='t')); xr.DataArray(x,dims='t').to_numpy();
xr.DataArray(x,dims='t').weighted(xr.DataArray(abs(y),dims='t')).mean();
xr.corr(xr.DataArray(x,dims='t'),xr.DataArray(y,dims='t')); xr.DataArray(c).real;
xr.DataArray(x).item(0);
xr.polyval(xr.DataArray(x),xr.DataArray([1.,2.],dims='degree',coords={'degree':[0,1]}));
xr.DataArray(x,dims='t').polyfit('t',1)['polyfit_coefficients'];
xr.DataArray(x,dims='t').reduce(np.mean); xr.DataArray(x,dims='t').copy(deep=True);
xr.broadcast(xr.DataArray(x,dims='t'),xr.DataArray(y,dims='s'))[0]; xr.Variable('t',x).mean();
xr.DataArray(x,dims='t')==xr.DataArray(x,dims='t');
xr.DataArray(x,dims='t').equals(xr.DataArray(x,dims='t')); xr.DataArray(x,dims='t').dropna('t');
xr.DataArray(m,dims=('a','b')).plot() is None; xr.DataArray(x,dims='t').count();
xr.DataArray(b,dims='t').any(); xr.DataArray(x,dims='t').drop_attrs();
xr.dot(xr.DataArray(x,dims='t'),xr.DataArray(y,dims='t'));
xr.cross(xr.DataArray(x[:3],dims='t'),xr.DataArray(y[:3],dims='t'),dim='t');
xr.DataArray(x,dims='t').coarsen(t=3).construct(t=('u','v'));
repr(xr.DataArray(x))[:10]=='<xarray.Da'; repr(xr.Dataset({'v':('t',x)}))[:5]=='<xarr';
xr.DataArray(x)._repr_html_()[:4]=='<div';
""",
"polars": """
pl.Series('a',x); pl.Series(x); pl.DataFrame({'a':x,'k':k}); pl.DataFrame(m); pl.from_numpy(m);
pl.Series(list(x)); pl.Series(x.tolist()); pl.DataFrame({'a':list(x)});
pl.Series('a',np.asarray(x)); xp.asarray(pl.Series('a',[1.,2.]));
xp.asarray(pl.DataFrame({'a':[1.,2.]})); pl.Series([1.,2.])*float(s); pl.Series([1.,2.])*s;
pl.Series([1.,2.,3.])[k[:3]]; pl.DataFrame({'a':[1,2,3]})[k]; pl.Series(x.__array__());
xp.from_dlpack(pl.Series([1.,2.])) if hasattr(pl.Series,'__dlpack__') else 0;
pl.Series('a',[1,2,3]).filter(b[:3]); pl.from_pandas(pd.DataFrame({'a':x}));
pl.DataFrame(pd.DataFrame(m,columns=list('abcd'))); pl.DataFrame({'a':x,'b':'t'});
pl.select(pl.lit(x)); pl.DataFrame({'a':[1.,2.,3.]}).with_columns(pl.Series('z',x[:3]));
pl.DataFrame({'a':[1.,2.,3.]}).filter(pl.col('a')>s); pl.Series(u); pl.Series(m);
pl.Series('a',f);
""",
}  # fmt: skip
