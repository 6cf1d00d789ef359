"""Fitted estimators by name: scikit-learn's, LightGBM's, XGBoost's and CatBoost's, and pipelines,
as people export them."""

import warnings

import numpy as np
import pandas as pd
from sklearn import (
    calibration,
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.datasets import make_classification, make_regression

N = 400


def data():
    """Rows and targets by kind: two classes, three, names, numbers; rows with gaps; a table."""
    three, y3 = make_classification(N, 8, n_informative=5, n_classes=3, random_state=0)
    two, y2 = make_classification(N, 8, n_informative=5, random_state=1)
    real, yr = make_regression(N, 8, noise=0.1, random_state=2)
    rng = np.random.RandomState(0)
    gaps = three.astype(np.float32)
    gaps[rng.rand(*gaps.shape) < 0.1] = np.nan
    table = pd.DataFrame(
        {
            "age": rng.randint(18, 80, N).astype(np.float32),
            "income": (rng.rand(N) * 1e5).astype(np.float32),
            "city": rng.choice(["Bern", "Rome", "Oslo"], N),
            "job": rng.choice(["smith", "baker"], N),
        }
    )
    bought = ((table.age > 40) ^ (table.city == "Rome")).astype(int).to_numpy()
    f = lambda x: x.astype(np.float32)  # noqa: E731
    return {
        "three": (f(three), y3),
        "two": (f(two), y2),
        "names": (f(three), np.array(["cat", "dog", "eel"])[y3]),
        "yes": (f(two), np.array(["no", "yes"])[y2]),
        "real": (f(real), f(yr)),
        "reals": (f(real), np.stack([yr, yr**2], 1)),
        "counts": (f(real), np.abs(yr) / 100),
        "gaps": (gaps, y3),
        "table": (table, bought),
        "named table": (table, np.array(["no", "yes"])[bought]),
        "rows": (f(three), None),
        "classes": (f(three), np.stack([y3, three[:, 0] > 0], 1).astype(int)),
    }


def encoded(encoder):
    numbers = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    columns = [("numbers", numbers, ["age", "income"]), ("words", encoder, ["city", "job"])]
    return compose.ColumnTransformer(columns)


def unfitted():
    """(name, kind of data, estimator)."""
    E, L, S, P, T = ensemble, linear_model, svm, preprocessing, tree
    pipe = pipeline.make_pipeline
    logistic = lambda: L.LogisticRegression(max_iter=500)  # noqa: E731
    for kind in ("three", "two", "names", "yes"):
        yield f"DecisionTreeClassifier, {kind}", kind, T.DecisionTreeClassifier(max_depth=6)
        yield f"RandomForestClassifier, {kind}", kind, E.RandomForestClassifier(20)
        yield f"LogisticRegression, {kind}", kind, logistic()
        yield f"SVC with probabilities, {kind}", kind, S.SVC(probability=True, random_state=0)
    for kind in ("three", "two"):
        yield (
            f"GradientBoostingClassifier, {kind}",
            kind,
            E.GradientBoostingClassifier(n_estimators=20),
        )
        yield f"LinearSVC, {kind}", kind, S.LinearSVC()
        yield f"SGDClassifier, {kind}", kind, L.SGDClassifier(random_state=0)
    yield "ExtraTreesClassifier", "three", E.ExtraTreesClassifier(20)
    yield "AdaBoostClassifier", "three", E.AdaBoostClassifier(n_estimators=10)
    yield "BaggingClassifier", "three", E.BaggingClassifier(n_estimators=10)
    parts = [("a", logistic()), ("b", T.DecisionTreeClassifier(max_depth=4))]
    yield "StackingClassifier", "two", E.StackingClassifier(parts)
    yield (
        "VotingClassifier",
        "three",
        E.VotingClassifier(parts, voting="soft", flatten_transform=False),
    )
    yield "IsolationForest", "rows", E.IsolationForest(n_estimators=10)
    for name in "DecisionTree ExtraTree".split():
        yield f"{name}Regressor", "real", getattr(T, f"{name}Regressor")(max_depth=6)
    for name in "RandomForest ExtraTrees GradientBoosting Bagging AdaBoost".split():
        yield f"{name}Regressor", "real", getattr(E, f"{name}Regressor")(n_estimators=15)
    yield "RandomForestRegressor of two", "reals", E.RandomForestRegressor(15)
    parts = [("a", L.LinearRegression()), ("b", T.DecisionTreeRegressor(max_depth=4))]
    yield "VotingRegressor", "real", E.VotingRegressor(parts)
    for name in "LinearRegression Ridge Lasso ElasticNet BayesianRidge SGDRegressor Lars".split():
        yield name, "real", getattr(L, name)()
    yield "LinearRegression of two", "reals", L.LinearRegression()
    yield "HuberRegressor", "real", L.HuberRegressor(max_iter=1000)
    yield "PoissonRegressor", "counts", L.PoissonRegressor()
    yield "RidgeClassifier", "three", L.RidgeClassifier()
    yield "Perceptron", "three", L.Perceptron()
    yield "OneVsRestClassifier", "three", multiclass.OneVsRestClassifier(logistic())
    for kernel in "linear poly sigmoid".split():
        yield f"SVC, {kernel}", "two" if kernel == "sigmoid" else "three", S.SVC(kernel=kernel)
    yield "NuSVC", "two", S.NuSVC()
    for kernel in "rbf poly".split():
        yield f"SVR, {kernel}", "real", S.SVR(kernel=kernel)
    yield "NuSVR", "real", S.NuSVR()
    yield "OneClassSVM", "rows", S.OneClassSVM()
    scalers = [P.StandardScaler(), P.MinMaxScaler(), P.MaxAbsScaler(), P.RobustScaler()]
    scalers += [P.Normalizer(n) for n in ("l1", "l2", "max")]
    scalers += [P.Binarizer(threshold=0.3), P.PolynomialFeatures(2), P.PowerTransformer()]
    scalers += [
        P.KBinsDiscretizer(4, encode="ordinal"),
        decomposition.PCA(4),
        decomposition.TruncatedSVD(4),
    ]
    scalers += [feature_selection.SelectKBest(k=4), feature_selection.VarianceThreshold()]
    for one in scalers:
        yield f"{one}, LogisticRegression", "three", pipe(one, logistic())
    yield "SimpleImputer, LogisticRegression", "gaps", pipe(impute.SimpleImputer(), logistic())
    median = impute.SimpleImputer(strategy="median")
    yield (
        "SimpleImputer, RandomForestClassifier",
        "gaps",
        pipe(median, E.RandomForestClassifier(10)),
    )
    yield "KNNImputer", "gaps", impute.KNNImputer()
    yield "KNNImputer, LogisticRegression", "gaps", pipe(impute.KNNImputer(), logistic())
    yield "MultiOutputClassifier", "classes", multioutput.MultiOutputClassifier(logistic())
    yield (
        "MultiOutputClassifier of forests",
        "classes",
        multioutput.MultiOutputClassifier(E.RandomForestClassifier(10)),
    )
    yield "GaussianNB", "three", naive_bayes.GaussianNB()
    yield "BernoulliNB", "three", naive_bayes.BernoulliNB()
    yield "MultinomialNB", "three", pipe(P.MinMaxScaler(), naive_bayes.MultinomialNB())
    yield "KNeighborsClassifier", "three", neighbors.KNeighborsClassifier()
    yield "KNeighborsRegressor", "real", neighbors.KNeighborsRegressor()
    yield "MLPClassifier", "three", neural_network.MLPClassifier((16,), max_iter=100)
    yield (
        "MLPRegressor",
        "real",
        neural_network.MLPRegressor(hidden_layer_sizes=(16,), max_iter=100),
    )
    yield "KMeans", "rows", cluster.KMeans(3, n_init=3)
    yield "CalibratedClassifierCV", "three", calibration.CalibratedClassifierCV(S.LinearSVC(), cv=2)
    yield "LinearDiscriminantAnalysis", "three", discriminant_analysis.LinearDiscriminantAnalysis()
    hot = lambda: encoded(P.OneHotEncoder(handle_unknown="ignore"))  # noqa: E731
    yield "a table, LogisticRegression", "table", pipe(hot(), logistic())
    yield (
        "a table, RandomForestClassifier",
        "named table",
        pipe(hot(), E.RandomForestClassifier(10)),
    )
    ordinal = encoded(P.OrdinalEncoder())
    yield (
        "a table, GradientBoostingClassifier",
        "table",
        pipe(ordinal, E.GradientBoostingClassifier(n_estimators=10)),
    )


def boosted():
    """The same of LightGBM, XGBoost and CatBoost."""
    import catboost
    import lightgbm
    import xgboost

    for kind in ("three", "two"):
        yield f"LGBMClassifier, {kind}", kind, lightgbm.LGBMClassifier(n_estimators=10, verbose=-1)
        yield f"XGBClassifier, {kind}", kind, xgboost.XGBClassifier(n_estimators=10)
        yield (
            f"CatBoostClassifier, {kind}",
            kind,
            catboost.CatBoostClassifier(iterations=10, verbose=0, allow_writing_files=False),
        )
    yield "LGBMRegressor", "real", lightgbm.LGBMRegressor(n_estimators=10, verbose=-1)
    yield "LGBMClassifier with gaps", "gaps", lightgbm.LGBMClassifier(n_estimators=10, verbose=-1)
    yield "XGBRegressor", "real", xgboost.XGBRegressor(n_estimators=10)
    yield "XGBClassifier with gaps", "gaps", xgboost.XGBClassifier(n_estimators=10)
    yield (
        "CatBoostRegressor",
        "real",
        catboost.CatBoostRegressor(iterations=10, verbose=0, allow_writing_files=False),
    )


def fitted(name):
    """The estimator of this name, and rows to predict."""
    every = data()
    for known, kind, estimator in [*unfitted(), *boosted()]:
        if known != name:
            continue
        X, y = every[kind]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, *([] if y is None else [y]))
        return estimator, X
    raise KeyError(name)


def names():
    return [name for name, _, _ in [*unfitted(), *boosted()]]
